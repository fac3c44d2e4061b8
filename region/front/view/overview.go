package view

import (
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/asjson"
)

// Overview returns what operators read of what a node told of itself.
func Overview(n *quotadv1.NodeView) *quotadv1.NodeOverview {
	s := n.GetStatus()
	o := &quotadv1.NodeOverview{Region: s.GetRegion(), Node: s.GetNode(), Version: s.GetVersion(),
		Started: n.GetStarted(), At: n.GetAt(), Ready: s.GetReady(), NotReady: asjson.Some(s.GetNotReady()),
		Epoch: s.GetEpoch(), FileRefused: asjson.Some(s.GetDocuments().GetFileRefused()), Mates: int64(len(s.GetMates())),
		Store: store(s.GetStore()), Recovering: s.GetRecovery().GetWaiting(),
		Journal: journal(s.GetJournal()), LocalUnbooked: s.GetLocal().GetUnbooked(),
		Peers: s.GetPeers(), Limits: n.GetLimits()}
	for _, d := range s.GetDocuments().GetOpen() {
		o.Documents = append(o.Documents, d.GetDocument())
	}
	for _, r := range s.GetDocuments().GetRegions() {
		if r.GetWaited() != nil {
			o.Waiting = append(o.Waiting, r.GetRegion())
		}
	}
	return o
}

func store(s *quotadv1.StoreStatus) *quotadv1.NodeStore {
	o := &quotadv1.NodeStore{Kind: s.GetKind(), Address: s.GetAddress(), Id: s.GetId(),
		Nodes: s.GetNodes(), OutOfReach: int64(len(s.GetOutOfReach())), Stopped: asjson.Some(s.GetStopped()),
		Rivals: int64(len(s.GetRivals())), LastLoss: s.GetLastLoss(), Losses: s.GetLosses(),
		MaxmemoryPolicy: asjson.Some(s.GetMaxmemoryPolicy()), ClockApart: s.GetClockApart()}
	for _, r := range s.GetRefusing() {
		o.Refusing = append(o.Refusing, r.GetKind())
	}
	return o
}

func journal(j *quotadv1.JournalStatus) string {
	switch {
	case j.GetFailed():
		return "failed"
	case j.GetWhole():
		return "whole"
	}
	return "not_whole"
}
