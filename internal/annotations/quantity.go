package annotations

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// digitsMost bounds the digits of a quantity. What is longer is too large or too exact for a rate.
const digitsMost = 64

// suffix is what a suffix of a Kubernetes quantity stands for: mantissa * 2^two * 10^ten.
// (k8s.io/apimachinery, pkg/api/resource/suffix.go. K is none, and neither is B.)
func suffix(text string) (two, ten int, ok bool) {
	switch text {
	case "":
		return 0, 0, true
	case "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return 10 * (1 + strings.Index("KMGTPE", text[:1])), 0, true
	case "n":
		return 0, -9, true
	case "u":
		return 0, -6, true
	case "m":
		return 0, -3, true
	case "k":
		return 0, 3, true
	case "M", "G", "T", "P", "E":
		return 0, 6 + 3*strings.Index("MGTPE", text), true
	}
	if exponent := strings.TrimPrefix(strings.TrimPrefix(text, "e"), "E"); len(exponent) == len(text)-1 && exponent != "" {
		n, err := strconv.Atoi(exponent)
		return 0, n, err == nil && -digitsMost <= n && n <= digitsMost
	}
	return 0, 0, false
}

// Rate reads a Kubernetes quantity as one of the four rates. The error says what is wrong with it.
func Rate(k limit.Key, text string) (limit.Rate, error) {
	most := uint64(limit.MaxBytesPerSec)
	if k.IsOps() {
		most = limit.MaxOpsPerSec
	}
	r, reason := quantity(text, most)
	if reason != "" {
		return limit.Rate{}, fault.Misusef("%s", reason)
	}
	return r, nil
}

// quantity reads a Kubernetes quantity as a rate: 10Mi, 10M, 1.5Gi, 500, 1e6. What is below one is
// cut off, because a rate is the most that is allowed. reason says what is wrong; empty: nothing.
func quantity(text string, most uint64) (r limit.Rate, reason string) {
	refuse := func(why string) (limit.Rate, string) { return r, shown(text) + " " + why }
	rest := strings.TrimLeft(text, "+-")
	sign := text[:len(text)-len(rest)]
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(rest)
	}
	number := rest[:end]
	two, ten, known := suffix(rest[end:])
	switch {
	case len(sign) > 1, strings.Trim(number, ".") == "", strings.Count(number, ".") > 1:
		return refuse("is no quantity; write 10Mi, 10M or a number")
	case !known:
		return refuse("is no Kubernetes quantity; write Ki, Mi, Gi (powers of 1024), k, M, G (of 1000), or a number")
	case sign == "-":
		return refuse("is negative")
	case len(number) > digitsMost:
		return refuse("has too many digits")
	}
	value, ok := new(big.Rat).SetString(strings.TrimSuffix("0"+number, "."))
	if !ok {
		return refuse("is no quantity; write 10Mi, 10M or a number")
	}
	factor := new(big.Int).Lsh(big.NewInt(1), uint(two))
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(ten, -ten))), nil)
	if ten >= 0 {
		value.Mul(value, new(big.Rat).SetInt(factor.Mul(factor, power)))
	} else {
		value.Quo(value, new(big.Rat).SetInt(power))
	}
	whole := new(big.Int).Quo(value.Num(), value.Denom())
	switch {
	case whole.Sign() == 0:
		return refuse("is less than 1 per second, and the kernel has no such limit; leave it out for no limit")
	case !whole.IsUint64() || whole.Uint64() > most:
		return refuse("is too large: the maximum is " + strconv.FormatUint(most, 10))
	}
	return limit.PerSecond(whole.Uint64()), ""
}
