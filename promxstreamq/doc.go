// Package promxstreamq makes Prometheus metrics: of what a process does, by [Hooks], and of what is stored, by a [Collector].
//
//	hooks, err := promxstreamq.Hooks(prometheus.DefaultRegisterer)
//	if err != nil {
//		return err
//	}
//	client, err := xstreamq.Open(url, xstreamq.WithHooks(hooks))
//	if err != nil {
//		return err
//	}
//	prometheus.MustRegister(promxstreamq.NewCollector(client.Admin()))
//	http.Handle("GET /metrics", promhttp.Handler())
//
// Every process has the hooks. The collector's figures are the same wherever they are read, so one process with it is
// enough, or two for the case that one is down; dashboard.json, for Grafana, takes the largest of them.
//
// docs/telemetry.md in the repository lists all names.
package promxstreamq
