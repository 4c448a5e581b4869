// One node of 8 A100-40GB.
neuroshard.topology @cluster
  devices [#neuroshard.devices<8 x "A100-40GB">]
  levels [#neuroshard.level<"node", groups = [8], bandwidth = 230.0, latency = 15.0>]
