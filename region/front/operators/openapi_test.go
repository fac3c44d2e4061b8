package operators

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestOpenAPIHasEveryMember: the schemas have the members of the answers, with their types.
func TestOpenAPIHasEveryMember(t *testing.T) {
	fronts.WantAnswers(t, map[string]any{"Reset": resetAnswer{}, "Cut": cutAnswer{}, "Applied": Applied{},
		"Rehearsal": rehearsalAnswer{}},
		map[string]proto.Message{"Recover": &quotadv1.RecoverResponse{}, "Bucket": &quotadv1.BucketResponse{},
			"Status": &quotadv1.StatusResponse{}, "DocumentsAnswer": &quotadv1.DocumentsResponse{},
			"Overview": &quotadv1.OverviewResponse{}, "Explanation": &quotadv1.ExplainResponse{},
			"ListedBuckets": &quotadv1.ListBucketsResponse{}},
		map[string][]string{"ResetRequest": resetFields, "CutRequest": cutFields,
			"RecoverRequest": recoverFields, "RehearsalRequest": rehearsalFields})
}
