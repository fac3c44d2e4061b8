package workload

// Suite returns the workloads for comparing systems: every named demand with the usual setting, and
// then variants of limit, window, number of regions and algorithm. Each workload has a name of its
// own. The same seed gives the same workloads on every machine.
func Suite(seed uint64) []*Workload {
	var suite []*Workload
	add := func(demand string, change func(*Setting)) {
		s := Usual()
		change(&s)
		w, err := Make(demand, s, seed+uint64(len(suite)))
		if err != nil {
			panic(err) // the names are constants, and a test makes all of them
		}
		suite = append(suite, w)
	}
	for _, d := range shapes {
		if d.large { // a second has a handful of them: see variants
			continue
		}
		add(d.name, func(s *Setting) {
			if d.name == "under-threshold" {
				s.Regions = 10
			}
		})
	}
	for _, v := range variants {
		add(v.demand, v.change)
	}
	return suite
}

// variants are the workloads with other settings than the usual one.
var variants = []struct {
	demand string
	change func(*Setting)
}{
	{"even-90", func(s *Setting) { s.Limit = 3 }},
	{"zipf", func(s *Setting) { s.Limit = 10 }},
	{"zipf", func(s *Setting) { s.Limit = 100 }},
	{"zipf", func(s *Setting) { s.Limit = 1_000_000 }},
	{"zipf", func(s *Setting) { s.Regions = 2 }},
	{"zipf", func(s *Setting) { s.Regions = 10 }},
	{"step", func(s *Setting) { s.Window = 10 * Second }},
	{"zipf", func(s *Setting) { s.Window = 60 * Second }},
	{"cell-end", func(s *Setting) { s.Window = 60 * Second }},
	{"step", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"step", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"step", func(s *Setting) { s.Algorithm, s.Burst = "token_bucket", 200 }},
	{"step", func(s *Setting) { s.Algorithm, s.Burst = "leaky_bucket", 200 }},
	{"even-90", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"even-90", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"zipf", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"zipf", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Window = "sliding_window_log", 60*Second }},
	{"anti-phase-4", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Burst, s.Window = "token_bucket", 200, 60*Second }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Burst, s.Window = "leaky_bucket", 200, 60*Second }},
	{"one-region", func(s *Setting) {
		s.Algorithm, s.Burst, s.Window = "leaky_bucket", 200, 10*Second
	}},
	{"large-costs-80", func(s *Setting) { s.Window = 60 * Second }},
	{"large-costs-95", func(s *Setting) { s.Window = 60 * Second }},
	{"large-costs-80", func(s *Setting) { s.Algorithm, s.Window = "sliding_window_counter", 60*Second }},
}
