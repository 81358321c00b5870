package promxstreamq_test

import (
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/promxstreamq"
)

// Hooks come before the client, the collector after it.
func Example() {
	hooks, err := promxstreamq.Hooks(prometheus.DefaultRegisterer)
	if err != nil {
		log.Fatal(err)
	}
	client, err := xstreamq.Open("redis://localhost:6379", xstreamq.WithHooks(hooks))
	if err != nil {
		log.Fatal(err)
	}
	prometheus.MustRegister(promxstreamq.NewCollector(client.Admin()))
}
