package localredis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots of a Redis Cluster.
const slots = 16384

// Cluster is a Redis Cluster of masters on the loopback interface.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts so many masters, shares the slots out evenly and waits until
// all of them agree. The caller must Stop it.
func StartCluster(ctx context.Context, masters int) (*Cluster, error) {
	c := &Cluster{}
	for range masters {
		node, err := Start(ctx, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.join(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return c, nil
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs
}

// Stop ends all nodes.
func (c *Cluster) Stop() {
	for _, node := range c.Nodes {
		node.Stop()
	}
}

func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	clients := make([]*redis.Client, len(c.Nodes))
	for i, node := range c.Nodes {
		clients[i] = redis.NewClient(&redis.Options{Addr: node.Addr})
		defer clients[i].Close()
	}
	for i, rdb := range clients {
		first, last := i*slots/len(clients), (i+1)*slots/len(clients)-1
		if err := rdb.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		host, port, _ := strings.Cut(c.Nodes[0].Addr, ":")
		if err := rdb.ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	for _, rdb := range clients {
		for {
			info, err := rdb.ClusterInfo(ctx).Result()
			if err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(clients))) {
				break
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("the nodes do not agree: %s", info)
			}
		}
	}
	return nil
}
