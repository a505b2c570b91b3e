import { expect } from 'chai';
import { TestCollector } from '../support/collector';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { type RunningSandbox, runningSandbox, SANDBOX_GATEWAY } from '../support/sandboxes';
import { until } from '../support/until';

const OUTPUT = 'output that no collector may see';
const SECRET = 'a variable that no collector may see';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('Traces of sandboxes', function () {
  this.timeout(60_000);
  let collector: TestCollector;
  let gateway: TestGateway;
  let box: RunningSandbox;

  before(async () => {
    findProgram('bwrap');
    collector = await TestCollector.start();
    gateway = await startGateway({
      ...SANDBOX_GATEWAY,
      env: { OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    });
    box = await runningSandbox(gateway);
  });
  after(async () => {
    await gateway?.stop();
    await collector?.stop();
  });

  const spanOf = (operation: string) =>
    until(`the span of ${operation}`, () =>
      collector.spans.find(({ attributes }) => attributes['tollgate.operation'] === operation),
    );

  it('have a span of the creation, from the request to the running instance', async () => {
    const span = await spanOf('CREATE');
    expect(span).to.include({ name: 'sandbox CREATE', kind: 'internal', hasFailed: false, parentSpanId: undefined });
    expect(span.attributes).to.include({ 'tollgate.sandbox_id': box.id, 'tollgate.operation_status': 'SUCCEEDED' });
    expect(span.endMs).to.be.greaterThan(span.startMs);
  });

  it('have a span of each command, with the duration of the command, in the trace of the client', async () => {
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01` };
    const command = `sleep 0.2; echo '${OUTPUT}'; exit 7`;
    const { json } = await box.post('/commands', { command, env: { SECRET } }, headers);
    expect(json).to.include({ exitCode: 7, stdout: `${OUTPUT}\n` });
    const span = await spanOf('EXEC');
    expect(span).to.include({ traceId: TRACE, parentSpanId: SPAN, hasFailed: false });
    expect(span.endMs - span.startMs).to.be.at.least(200);
    expect(span.attributes['tollgate.operation_id']).to.be.a('string');
  });

  it('have a span of a failed operation, with its error code', async () => {
    const path = '/workspace/a-name-that-no-collector-may-see';
    const answer = await box.get(`/files?path=${path}`);
    expect(answer.status).to.equal(404);
    const span = await spanOf('FILE_READ');
    expect(span.hasFailed).to.equal(true);
    expect(span.attributes).to.include({ 'error.type': 'FILE_NOT_FOUND', 'tollgate.operation_status': 'FAILED' });
  });

  it('have a span of the end of a sandbox, and contain no commands, output, variables, paths and keys', async () => {
    await box.end();
    await spanOf('TERMINATE');
    const sent = Buffer.concat(collector.bodies).toString('utf8');
    for (const secret of [SECRET, OUTPUT, 'sleep', 'a-name-that-no', '/workspace', box.key, 'sk-svc-'])
      expect(sent).to.not.include(secret);
  });
});
