// One node of 8 H200.
neuroshard.topology @cluster
  devices [#neuroshard.devices<8 x "H200">]
  levels [#neuroshard.level<"node", groups = [8], bandwidth = 350.0, latency = 15.0>]
