// Two nodes of 8 A100-40GB; the network between them is ten times slower than inside.
neuroshard.topology @cluster
  devices [#neuroshard.devices<8 x "A100-40GB">,
           #neuroshard.devices<8 x "A100-40GB", host = 1>]
  levels [#neuroshard.level<"network", groups = [16], bandwidth = 22.0, latency = 30.0>,
          #neuroshard.level<"node", groups = [8, 8], bandwidth = 230.0, latency = 15.0>]
