import { Counter, Gauge } from 'prom-client';
import { metrics } from '../base/metrics';
import type { UpstreamHealth } from './health';

/** Exposes the metrics of upstreams, labeled by upstream name. They are computed at each scrape, so that counting adds no cost to a call. */
export function exposeUpstreams(health: UpstreamHealth): void {
  new Counter({
    name: 'tollgate_upstream_attempts_total',
    help: 'Attempts of this process at an upstream, by outcome.',
    labelNames: ['upstream', 'outcome'],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { name, answers, failures } of health.upstreams()) {
        this.inc({ upstream: name, outcome: 'answered' }, answers);
        for (const [outcome, count] of failures) this.inc({ upstream: name, outcome }, count);
      }
    },
  });
  new Gauge({
    name: 'tollgate_upstream_first_token_seconds',
    help: 'Moving estimate of the time to the first content of streams.',
    labelNames: ['upstream'],
    aggregator: 'average',
    registers: [metrics],
    collect() {
      this.reset();
      for (const { name, latencies } of health.upstreams())
        if (latencies.stream.value !== undefined) this.set({ upstream: name }, latencies.stream.value / 1_000);
    },
  });
  new Gauge({
    name: 'tollgate_upstream_failure_ratio',
    help: 'Moving estimate of the share of attempts that fail; it decays without attempts.',
    labelNames: ['upstream'],
    aggregator: 'average',
    registers: [metrics],
    collect() {
      this.reset();
      for (const gauge of health.upstreams()) this.set({ upstream: gauge.name }, gauge.failureRate(health.now()));
    },
  });
  new Gauge({
    name: 'tollgate_upstream_ejected',
    help: '1 while an upstream is ejected after failures or disabled by an operator.',
    labelNames: ['upstream'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const { name, ejection, isDisabledByOperator } of health.upstreams())
        this.set({ upstream: name }, isDisabledByOperator || ejection.outUntilMs !== undefined ? 1 : 0);
    },
  });
  new Counter({
    name: 'tollgate_upstream_credential_refusals_total',
    help: 'Answers 401, 403 and 429 that a credential of an upstream received, by status.',
    labelNames: ['upstream', 'credential', 'status'],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { name: upstream, credentials } of health.upstreams())
        for (const { name: credential, refusals } of credentials.values())
          for (const [status, count] of refusals) this.inc({ upstream, credential, status }, count);
    },
  });
  new Gauge({
    name: 'tollgate_upstream_credential_refused',
    help: '1 while a credential of an upstream is rejected or rate limited.',
    labelNames: ['upstream', 'credential'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const { name: upstream, credentials } of health.upstreams())
        for (const { name: credential, refusedWith } of credentials.values())
          this.set({ upstream, credential }, refusedWith === undefined ? 0 : 1);
    },
  });
}
