package strictyaml

import (
	"strconv"
	"strings"
)

// foreignBools are the words without quotes that gopkg.in/yaml.v2 reads into a bool.
var foreignBools = func() map[string]bool {
	all := map[string]bool{}
	for word, means := range map[string]bool{"y": true, "yes": true, "true": true, "on": true,
		"n": false, "no": false, "false": false, "off": false} {
		all[word], all[strings.ToUpper(word)] = means, means
		all[strings.ToUpper(word[:1])+word[1:]] = means
	}
	return all
}()

// foreignInteger reads a whole number as gopkg.in/yaml.v2 does: 1_000, +5, 0x10, 0b11, 0o17, and
// 010 for eight.
func foreignInteger(text string) (int64, error) {
	if text == "" || !strings.ContainsRune("+-0123456789", rune(text[0])) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
}
