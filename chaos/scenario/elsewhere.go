package scenario

// Questions are what is asked for the loads, in their order: for a stage that
// looks before the load begins at what the deployment decides them by.
func (s *Scenario) Questions() []Question {
	all := make([]Question, len(s.Load))
	for i, l := range s.Load {
		all[i] = s.question(l)
	}
	return all
}
