// Command model searches every scenario of the message lifecycle to its long bound and tells what it found. Exit status 1
// when a scenario that must find nothing finds something, or a mutant is not caught.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/model"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run gives the exit status: 0 as expected, 1 not, 2 for a wrong call.
func run(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.SetOutput(errOut)
	only := flags.String("only", "", "run scenarios whose title contains this")
	scale := flags.Float64("scale", 1, "multiply every bound on states")
	jobs := flags.Int("jobs", 2, "scenarios at a time")
	verbose := flags.Bool("v", false, "print the traces of expected violations too")
	if flags.Parse(args) != nil {
		return 2
	}
	t0 := time.Now()
	var list []*model.Model
	for _, m := range model.Scenarios() {
		if strings.Contains(m.Title(), *only) {
			list = append(list, m)
		}
	}
	if len(list) == 0 || *jobs < 1 {
		fmt.Fprintf(errOut, "model: %d scenarios with %q in their title, -jobs %d: both must be at least 1\n", len(list), *only, *jobs)
		return 2
	}
	results := make([]chan model.Result, len(list))
	for i := range results {
		results[i] = make(chan model.Result, 1)
	}
	gate := make(chan struct{}, *jobs)
	go func() {
		for i, m := range list {
			gate <- struct{}{}
			go func() {
				results[i] <- m.Search(int(float64(m.Long) * *scale))
				<-gate
			}()
		}
	}()
	bad, states := 0, 0
	for i := range results {
		r := <-results[i]
		fmt.Fprint(out, r.Report(*verbose))
		states += r.States
		if !r.AsExpected() {
			bad++
		}
	}
	fmt.Fprintf(out, "%d scenarios, %d states, %d not as expected, %.0f s\n", len(list), states, bad, time.Since(t0).Seconds())
	if bad > 0 {
		return 1
	}
	return 0
}
