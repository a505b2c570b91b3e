import { expect } from 'chai';
import { Registry } from 'prom-client';
import { aggregateMetrics, countersOf, type MetricsAsJson, writeMetrics } from '../../../core/base/aggregate-metrics';
import { metrics } from '../../../core/base/metrics';
import { Buckets, QuickHistogram } from '../../../core/base/quick-histogram';

const NAME = 'tollgate_test_seconds';
const TRACE = '0af7651916cd43dd8448eb211c80319c';

describe('metrics of several processes', () => {
  let buckets: Buckets;

  before(() => {
    new QuickHistogram({ name: NAME, help: 'Of this test.' }, () => [{ labels: { route: '/v1/a"b' }, buckets }]);
  });
  after(() => metrics.removeSingleMetric(NAME));
  beforeEach(() => {
    buckets = new Buckets([0.5, 1, 2]);
  });

  /** Returns what one process publishes after these observations. */
  async function told(...observed: readonly (readonly [number, string?])[]): Promise<MetricsAsJson> {
    buckets = new Buckets([0.5, 1, 2]);
    for (const [value, traceId] of observed) buckets.observe(value, traceId);
    const families: MetricsAsJson = await metrics.getMetricsAsJSON();
    const wanted = families.filter(({ name }) => name === NAME || name === 'process_cpu_seconds_total');
    return JSON.parse(JSON.stringify(wanted)) as MetricsAsJson;
  }

  const linesOf = (text: string) => text.split('\n').filter((line) => line.startsWith(NAME));

  it("are added up, and a histogram value equal to a bucket's upper bound counts in that bucket", async () => {
    const text = await writeMetrics([await told([0.5], [3]), await told([0.7])], Registry.PROMETHEUS_CONTENT_TYPE);
    const label = 'route="/v1/a\\"b"';
    expect(linesOf(text)).to.deep.equal([
      `${NAME}_bucket{${label},le="0.5"} 1`,
      `${NAME}_bucket{${label},le="1"} 2`,
      `${NAME}_bucket{${label},le="2"} 2`,
      `${NAME}_bucket{${label},le="+Inf"} 3`,
      `${NAME}_sum{${label}} 4.2`,
      `${NAME}_count{${label}} 3`,
    ]);
    expect(text).to.match(/^process_cpu_seconds_total /m);
  });

  it('keep the last exemplar of each bucket in OpenMetrics format only', async () => {
    const processes = [await told([0.4, TRACE]), await told([0.3]), await told([9, TRACE])];
    const text = await writeMetrics(processes, Registry.OPENMETRICS_CONTENT_TYPE);
    const withExemplar = linesOf(text).filter((line) => line.includes(' # '));
    expect(withExemplar).to.have.length(2);
    expect(withExemplar[0]).to.match(
      /le="0\.5"\} 2 # \{trace_id="0af7651916cd43dd8448eb211c80319c"\} 0\.4 \d+(\.\d+)?$/,
    );
    expect(withExemplar[1]).to.match(/le="\+Inf"\} 3 # \{.*\} 9 /);
    expect(linesOf(text)[1]).to.include('le="1.0"');
    expect(text)
      .to.match(/^# TYPE process_cpu_seconds counter$/m)
      .and.to.match(/^process_cpu_seconds_total /m);
    expect(text).not.to.include('_total_total');
    expect(text.endsWith('# EOF\n')).to.equal(true);
    expect(await writeMetrics(processes, Registry.PROMETHEUS_CONTENT_TYPE)).not.to.include(TRACE);
  });

  it('keep the counts of a process that has ended', async () => {
    const ended = await aggregateMetrics([countersOf(await told([0.4])), countersOf(await told([0.4]))]);
    const text = await writeMetrics([ended, await told([0.4])], Registry.PROMETHEUS_CONTENT_TYPE);
    expect(linesOf(text).at(-1)).to.match(/ 3$/);
  });
});
