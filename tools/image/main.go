// Command image writes weir's container image into a file, from the two static binaries in a directory:
//
//	go run ./tools/image -version 0.1.0 -from . -to out/weir.tar
//
// ctr images import, podman load and skopeo copy oci-archive:FILE take it. The time in it is
// SOURCE_DATE_EPOCH's, or 1970: the same binaries give the same bytes.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/weir-io/weir/tools/image/oci"
)

func main() {
	version := flag.String("version", "", "weir's `VERSION`")
	name := flag.String("name", oci.Repository, "the image's `NAME`, without a tag")
	arch := flag.String("arch", runtime.GOARCH, "the `ARCHITECTURE` of the binaries")
	from := flag.String("from", ".", "the `DIRECTORY` that weir and weird are in")
	to := flag.String("to", "", "the `FILE` to write")
	flag.Parse()
	if err := write(*name, *version, *arch, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(name, version, arch, from, to string) error {
	if version == "" || to == "" {
		return errors.New("name a version and a file: -version 0.1.0 -to weir.tar")
	}
	created := time.Unix(0, 0)
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		created = time.Unix(seconds, 0)
	}
	var files [3][]byte
	for i, file := range []string{filepath.Join(from, "weir"), filepath.Join(from, "weird"), "LICENSE"} {
		var err error
		if files[i], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(f)
	err = oci.Write(buffered, oci.Weir(name+":"+version, version, arch, created, files[0], files[1], files[2]))
	if err = errors.Join(err, buffered.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
