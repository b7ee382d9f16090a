module contextsidecar

go 1.24
