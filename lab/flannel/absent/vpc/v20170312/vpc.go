// Package v20170312 replaces a module that the module proxy lacks: a backend that no lab uses.
package v20170312

import "errors"

var errAbsent = errors.New("this backend is not built in")

type (
	Client struct{}
	Filter struct {
		Name   *string
		Values []*string
	}
	Route struct {
		DestinationCidrBlock, GatewayType, GatewayId, RouteType *string
		Enabled                                                 *bool
		RouteId                                                 *uint64
	}
	RouteTable struct {
		RouteTableId *string
		RouteSet     []*Route
	}
	Request struct {
		Filters      []*Filter
		Routes       []*Route
		RouteTableId *string
	}
	Response struct {
		Response struct{ RouteTableSet []*RouteTable }
	}
)

func NewClientWithSecretId(_, _, _ string) (*Client, error)     { return &Client{}, nil }
func NewDescribeRouteTablesRequest() *Request                   { return &Request{} }
func NewDeleteRoutesRequest() *Request                          { return &Request{} }
func NewCreateRoutesRequest() *Request                          { return &Request{} }
func (*Client) DescribeRouteTables(*Request) (*Response, error) { return nil, errAbsent }
func (*Client) DeleteRoutes(*Request) (*Response, error)        { return nil, errAbsent }
func (*Client) CreateRoutes(*Request) (*Response, error)        { return nil, errAbsent }
