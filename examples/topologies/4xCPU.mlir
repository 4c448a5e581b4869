// Four devices on the machine at hand.
neuroshard.topology @cluster
  devices [#neuroshard.devices<4 x "CPU", memory = 2147483648>]
  levels [#neuroshard.level<"node", groups = [4], bandwidth = 8.0, latency = 20.0>]
