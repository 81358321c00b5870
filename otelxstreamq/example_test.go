package otelxstreamq_test

import (
	"log"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/otelxstreamq"
)

// With the providers that the program set for all.
func ExampleHooks() {
	client, err := xstreamq.Open("redis://localhost:6379", xstreamq.WithHooks(otelxstreamq.Hooks()))
	if err != nil {
		log.Fatal(err)
	}
	log.Println(client.Close())
}
