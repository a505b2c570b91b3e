import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { pino } from 'pino';
import { fail } from '../../../core/base/errors';
import { Call } from '../../../core/calls/call';
import type { PipelineSettings } from '../../../core/configuration/pipelines';
import { compilePipeline } from '../../../core/gateway/pipeline';
import type { AnyStep, Policy } from '../../../core/gateway/policy';
import { ClientLeft } from '../../../core/http/client-left';
import { SampleResponse, sampleGateway, sampleRequest } from '../../support/exchange';

function pipelineOf(steps: readonly AnyStep[]): PipelineSettings<Policy> {
  return {
    name: 'p',
    endpoints: [],
    steps: steps.map((step, index) => {
      const policy: Policy = {
        contract: 'policy/1',
        name: `step-${index}`,
        summary: '',
        schema: {},
        needs: [],
        provides: [],
        prepare: () => step,
      };
      return { policy, settings: {} };
    }),
  };
}

function runPipeline(
  pipeline: PipelineSettings<Policy>,
  request: IncomingMessage,
  response: SampleResponse,
  parts: Parameters<typeof sampleGateway>[0] = {},
): Promise<unknown> {
  const run = compilePipeline(pipeline, sampleGateway(parts));
  return new Promise<boolean>((resolve) => run(new Call(request, response), request, response, resolve));
}

/** Runs the steps on one request. `seen` collects what the steps append. */
async function run(...steps: readonly ((seen: string[]) => AnyStep)[]) {
  const seen: string[] = [];
  const request = sampleRequest('POST', '/v1/messages');
  const response = new SampleResponse(request);
  await runPipeline(pipelineOf(steps.map((step) => step(seen))), request, response);
  return { seen, response };
}

const continues =
  (word: string) =>
  (seen: string[]): AnyStep =>
  async () => {
    seen.push(word);
    return undefined;
  };

const answers =
  (word: string) =>
  (seen: string[]): AnyStep =>
  async (_call, _request, response) => {
    seen.push(word);
    response.end(word);
    return undefined;
  };

const throws = (error: unknown) => (): AnyStep => async () => {
  throw error;
};

/** Makes a step that passes its call to the test. */
const withCall =
  (use: (call: Call, seen: string[], response: SampleResponse) => Promise<void> | void) =>
  (seen: string[]): AnyStep =>
  async (call, _request, response) => {
    await use(call, seen, response as SampleResponse);
    return undefined;
  };

describe('a step that never resolves', () => {
  const request = sampleRequest('POST', '/v1/messages');

  async function runFor(stepTimeoutMs: number, boundsItself: boolean) {
    const response = new SampleResponse(request);
    let finish = () => {};
    const never = new Promise<undefined>((resolve) => {
      finish = () => resolve(undefined);
    });
    const pipeline = pipelineOf([() => never, continues('later')([])]);
    const [first] = pipeline.steps;
    if (boundsItself && first !== undefined) Object.assign(first.policy, { boundsItself: true });
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const run = runPipeline(pipeline, request, response, { stepTimeoutMs, log });
    return { run, response, lines, finish };
  }

  it('fails the call with 500 after stepTimeout, and the log names the policy of the step', async () => {
    const { run, response, lines, finish } = await runFor(20, false);
    await run;
    expect(response.statusCode).to.equal(500);
    expect(response.json['error']).to.include({ code: 'INTERNAL_ERROR' });
    expect(lines.join()).to.include('the policy \\"step-0\\" has not finished its step within 20 ms');
    finish();
  });

  it('is not timed out if its policy limits its own waiting time', async () => {
    const { run, response, finish } = await runFor(1, true);
    await new Promise((later) => setTimeout(later, 30));
    expect(response.headersSent).to.equal(false);
    finish();
    await run;
  });
});

describe('a pipeline', () => {
  it('runs its steps in order and ends with the step that answers', async () => {
    const { seen, response } = await run(continues('a'), continues('b'), answers('c'), continues('d'));
    expect(seen).to.deep.equal(['a', 'b', 'c']);
    expect(response.body).to.equal('c');
  });

  it('runs a synchronous step without waiting, and answers with the error that the step throws', async () => {
    const key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: '', allowedModels: undefined } };
    const seen: string[] = [];
    const throwsAtOnce: AnyStep = (call) => {
      seen.push(`key ${call.key?.keyId}`);
      throw fail('NOT_FOUND');
    };
    const request = sampleRequest('POST', '/v1/messages');
    const response = new SampleResponse(request);
    const running = runPipeline(
      pipelineOf([() => ({ key }), throwsAtOnce, continues('after')(seen)]),
      request,
      response,
    );
    expect(seen).to.deep.equal(['key k']);
    await running;
    expect(seen).to.deep.equal(['key k']);
    expect(response.statusCode).to.equal(404);
  });

  describe('a pipeline with a step that throws', () => {
    it("answers with the error's envelope and runs no later step", async () => {
      const { seen, response } = await run(throws(fail('INVALID_FIELD', { param: 'model' })), continues('after'));
      expect(seen).to.deep.equal([]);
      expect(response.statusCode).to.equal(400);
      expect(response.json['error']).to.include({ code: 'INVALID_FIELD', param: 'model', retryable: false });
      expect(response.json['request_id']).to.equal(response.getHeader('x-svc-request-id'));
      expect(response.getHeader('x-svc-source')).to.equal('platform');
      expect(response.getHeader('x-should-retry')).to.equal('false');
      expect(response.getHeader('x-routing-attempts')).to.equal('0');
      expect(response.getHeader('x-routing-fallback')).to.equal('false');
    });

    it('does not show the client an internal error', async () => {
      const { response } = await run(throws(new Error('the password is hush')));
      expect(response.statusCode).to.equal(500);
      expect(response.body).not.to.contain('hush').and.not.to.contain('    at ');
      expect(response.json['error']).to.include({ code: 'INTERNAL_ERROR' });
    });

    it('cuts off a response that has already begun, and appends nothing', async () => {
      const { response } = await run(() => async (_call, _request, given) => {
        given.writeHead(200);
        throw new Error('too late');
      });
      expect(response.destroyed).to.equal(true);
      expect(response.body).to.equal('');
    });
  });

  describe('a pipeline with refusal hooks', () => {
    it('runs the last added hook first, before the error is sent, and passes each hook the error of the previous one', async () => {
      const { seen, response } = await run(
        withCall((call, notes) => {
          call.onRefusal(async (error) => {
            notes.push(`first sees ${error.code}`);
            return fail('INVALID_API_KEY');
          });
          call.onRefusal(async (error) => {
            notes.push(`second sees ${error.code}`);
            return fail('FORBIDDEN');
          });
        }),
        throws(fail('NOT_FOUND')),
      );
      expect(seen).to.deep.equal(['second sees NOT_FOUND', 'first sees FORBIDDEN']);
      expect(response.statusCode).to.equal(401);
    });
  });

  describe('a pipeline with end-of-call handlers', () => {
    const twoEndings = withCall((call, seen) => {
      call.onEnd(async () => void seen.push('first added'));
      call.onEnd(async () => void seen.push('last added'));
    });

    it('runs each end-of-call handler once after the answer, the last added one first', async () => {
      const { seen } = await run(twoEndings, answers('answer'));
      expect(seen).to.deep.equal(['answer', 'last added', 'first added']);
    });

    it('runs the end-of-call handlers before it sends an error', async () => {
      const { seen, response } = await run(
        twoEndings,
        withCall((call, notes, given) => call.onEnd(async () => void notes.push(`sent: ${given.headersSent}`))),
        throws(fail('NOT_FOUND')),
      );
      expect(seen).to.deep.equal(['sent: false', 'last added', 'first added']);
      expect(response.statusCode).to.equal(404);
    });

    it('runs all end-of-call handlers even if one fails, and the client still receives the error', async () => {
      const { seen, response } = await run(
        twoEndings,
        withCall((call) => call.onEnd(async () => Promise.reject(new Error('this ending fails on purpose')))),
        throws(fail('NOT_FOUND')),
      );
      expect(seen).to.deep.equal(['last added', 'first added']);
      expect(response.statusCode).to.equal(404);
    });
  });

  describe('a pipeline whose client disconnects', () => {
    it('aborts the running step, runs no later step, and runs the end-of-call handlers that free resources', async () => {
      const { seen, response } = await run(
        withCall((call, notes, given) => {
          call.onEnd(async () => void notes.push('given back'));
          given.clientLeaves();
          notes.push(`aborted: ${call.left.aborted}`);
          expect(call.left.reason).to.be.instanceOf(ClientLeft);
        }),
        continues('after'),
      );
      expect(seen).to.deep.equal(['aborted: true', 'given back']);
      expect(response.headersSent).to.equal(false);
    });

    it('records 499 before the end-of-call handlers run, even if refusal hooks fail', async () => {
      let facts: Call['facts'] | undefined;
      const { seen } = await run(
        withCall((call, notes, given) => {
          facts = call.facts;
          call.onRefusal(async () => Promise.reject(new Error('nobody listens')));
          call.onEnd(async () => void notes.push(`${call.facts.status} ${call.facts.errorCode}`));
          given.clientLeaves();
        }),
        continues('after'),
      );
      expect(seen).to.deep.equal(['499 CLIENT_LEFT']);
      expect(facts?.status).to.equal(499);
    });
  });
});
