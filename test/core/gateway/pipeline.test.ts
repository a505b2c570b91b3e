import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { pino } from 'pino';
import { toGatewayError } from '../../../core/api/thrown';
import { Call } from '../../../core/calls/call';
import type { PipelineSettings } from '../../../core/configuration/pipelines';
import { fail } from '../../../core/errors';
import { compilePipeline } from '../../../core/gateway/pipeline';
import type { AnyStep, Policy } from '../../../core/gateway/policy';
import { ClientLeft } from '../../../core/http/client-left';
import { LedgerUnavailable } from '../../../core/ledger/ledger';
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
): Promise<unknown> {
  return compilePipeline(pipeline, sampleGateway())(new Call(request, response), request, response);
}

/** Runs the steps on one request. `seen` collects what the steps append. */
async function run(...steps: readonly ((seen: string[]) => AnyStep)[]) {
  const seen: string[] = [];
  const request = sampleRequest('POST', '/v1/messages');
  const response = new SampleResponse(request);
  await runPipeline(pipelineOf(steps.map((step) => step(seen))), request, response);
  return { seen, response };
}

const goesOn =
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
    const pipeline = pipelineOf([() => never, goesOn('later')([])]);
    const [first] = pipeline.steps;
    if (boundsItself && first !== undefined) Object.assign(first.policy, { boundsItself: true });
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const run = compilePipeline(pipeline, sampleGateway({ stepTimeoutMs, log }))(
      new Call(request, response),
      request,
      response,
    );
    return { run, response, lines, finish };
  }

  it('fails the call with 500 after stepTimeout, and the log names its policy', async () => {
    const { run, response, lines, finish } = await runFor(20, false);
    await run;
    expect(response.statusCode).to.equal(500);
    expect(response.json['error']).to.include({ code: 'INTERNAL_ERROR' });
    expect(lines.join()).to.include('the policy \\"step-0\\" has not finished its step within 20 ms');
    finish();
  });

  it('is not timed out if its policy bounds its own waiting', async () => {
    const { run, response, finish } = await runFor(1, true);
    await new Promise((later) => setTimeout(later, 30));
    expect(response.headersSent).to.equal(false);
    finish();
    await run;
  });
});

describe('a pipeline', () => {
  it('runs its steps in order and ends with the one that answers', async () => {
    const { seen, response } = await run(goesOn('a'), goesOn('b'), answers('c'), goesOn('d'));
    expect(seen).to.deep.equal(['a', 'b', 'c']);
    expect(response.body).to.equal('c');
  });

  it('runs a synchronous step without waiting, and answers the error that it throws', async () => {
    const key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: '', allowedModels: undefined } };
    const seen: string[] = [];
    const throwsAtOnce: AnyStep = (call) => {
      seen.push(`key ${call.key?.keyId}`);
      throw fail('NOT_FOUND');
    };
    const request = sampleRequest('POST', '/v1/messages');
    const response = new SampleResponse(request);
    const running = runPipeline(pipelineOf([() => ({ key }), throwsAtOnce, goesOn('after')(seen)]), request, response);
    expect(seen).to.deep.equal(['key k']);
    await running;
    expect(seen).to.deep.equal(['key k']);
    expect(response.statusCode).to.equal(404);
  });

  it('passes the values that a step provides to later steps', async () => {
    const key = { accountId: 'acc', keyId: 'k', settings: { rev: 0, name: 'n', allowedModels: undefined } };
    const { seen } = await run(
      () => async () => ({ key }),
      withCall((call, notes) => void notes.push(call.key?.accountId ?? 'nobody')),
      answers('done'),
    );
    expect(seen[0]).to.equal('acc');
  });

  it('sends the request id of every error under the three names that SDKs read', async () => {
    const { response } = await run(throws(fail('INTERNAL_ERROR')));
    const id = response.getHeader('x-svc-request-id');
    expect(id).to.match(/^req_[0-9a-f]{24}$/);
    expect(response.getHeader('request-id')).to.equal(id);
    expect(response.getHeader('x-request-id')).to.equal(id);
  });

  describe('with a step that throws', () => {
    it('answers with the envelope of the error and runs no later step', async () => {
      const { seen, response } = await run(throws(fail('INVALID_FIELD', { param: 'model' })), goesOn('after'));
      expect(seen).to.deep.equal([]);
      expect(response.statusCode).to.equal(400);
      expect(response.json['error']).to.include({ code: 'INVALID_FIELD', param: 'model', retryable: false });
      expect(response.json['request_id']).to.equal(response.getHeader('x-svc-request-id'));
      expect(response.getHeader('x-svc-source')).to.equal('platform');
      expect(response.getHeader('x-should-retry')).to.equal('false');
      expect(response.getHeader('x-routing-attempts')).to.equal('0');
      expect(response.getHeader('x-routing-fallback')).to.equal('false');
    });

    it('hides from the client what is not meant for it', async () => {
      const { response } = await run(throws(new Error('the password is hush')));
      expect(response.statusCode).to.equal(500);
      expect(response.body).not.to.contain('hush').and.not.to.contain('    at ');
      expect(response.json['error']).to.include({ code: 'INTERNAL_ERROR' });
    });

    it('sends Retry-After for an error that a retry may cure', async () => {
      const { response } = await run(throws(new LedgerUnavailable('slow')));
      expect(response.statusCode).to.equal(503);
      expect(response.getHeader('retry-after')).to.equal('1');
      expect(response.getHeader('x-should-retry')).to.equal('true');
    });

    it('cuts off a response that has begun, and appends nothing', async () => {
      const { response } = await run(() => async (_call, _request, given) => {
        given.writeHead(200);
        throw new Error('too late');
      });
      expect(response.destroyed).to.equal(true);
      expect(response.body).to.equal('');
    });

    it('accepts a thrown value that is not an Error', async () => {
      for (const thrown of [undefined, null, 'text', 5])
        expect((await run(throws(thrown))).response.statusCode).to.equal(500);
    });
  });

  describe('with refusal hooks', () => {
    it('runs the last added first, before the error is sent, each with the error of the previous hook', async () => {
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

    it('sends the error that a hook throws instead', async () => {
      const { response } = await run(
        withCall((call) => call.onRefusal(async () => Promise.reject(fail('INVALID_API_KEY')))),
        throws(fail('NOT_FOUND')),
      );
      expect(response.statusCode).to.equal(401);
    });

    it('does not run them for a call that was answered', async () => {
      const { seen } = await run(
        withCall((call, notes) =>
          call.onRefusal(async (error) => {
            notes.push('asked');
            return error;
          }),
        ),
        answers('fine'),
      );
      expect(seen).to.deep.equal(['fine']);
    });
  });

  describe('with endings', () => {
    const twoEndings = withCall((call, seen) => {
      call.onEnd(async () => void seen.push('first added'));
      call.onEnd(async () => void seen.push('last added'));
    });

    it('runs the last added first, once, after the answer', async () => {
      const { seen } = await run(twoEndings, answers('answer'));
      expect(seen).to.deep.equal(['answer', 'last added', 'first added']);
    });

    it('runs them before it sends an error', async () => {
      const { seen, response } = await run(
        twoEndings,
        withCall((call, notes, given) => call.onEnd(async () => void notes.push(`sent: ${given.headersSent}`))),
        throws(fail('NOT_FOUND')),
      );
      expect(seen).to.deep.equal(['sent: false', 'last added', 'first added']);
      expect(response.statusCode).to.equal(404);
    });

    it('runs all of them even if one fails, and the client still receives the error', async () => {
      const { seen, response } = await run(
        twoEndings,
        withCall((call) => call.onEnd(async () => Promise.reject(new Error('this ending fails on purpose')))),
        throws(fail('NOT_FOUND')),
      );
      expect(seen).to.deep.equal(['last added', 'first added']);
      expect(response.statusCode).to.equal(404);
    });

    it('runs an ending that is added after the call has ended', async () => {
      const { seen } = await run(
        withCall(async (call, notes) => {
          await call.end();
          call.onEnd(async () => void notes.push('late'));
        }),
        answers('answer'),
      );
      expect(seen).to.include('late');
    });
  });

  describe('whose client disconnects', () => {
    it('aborts the running step, runs none after it, and frees what the call took', async () => {
      const { seen, response } = await run(
        withCall((call, notes, given) => {
          call.onEnd(async () => void notes.push('given back'));
          given.clientLeaves();
          notes.push(`aborted: ${call.left.aborted}`);
          expect(call.left.reason).to.be.instanceOf(ClientLeft);
        }),
        goesOn('after'),
      );
      expect(seen).to.deep.equal(['aborted: true', 'given back']);
      expect(response.headersSent).to.equal(false);
    });

    it('takes no resources after the client has disconnected', async () => {
      const { seen } = await run(
        withCall((_call, _notes, given) => given.clientLeaves()),
        withCall((call, notes) => {
          notes.push('taken');
          call.onEnd(async () => void notes.push('given back'));
        }),
        answers('answer'),
      );
      expect(seen).to.deep.equal([]);
    });

    it('records 499 before the endings run, even if hooks fail', async () => {
      let facts: Call['facts'] | undefined;
      const { seen } = await run(
        withCall((call, notes, given) => {
          facts = call.facts;
          call.onRefusal(async () => Promise.reject(new Error('nobody listens')));
          call.onEnd(async () => void notes.push(`${call.facts.status} ${call.facts.errorCode}`));
          given.clientLeaves();
        }),
        goesOn('after'),
      );
      expect(seen).to.deep.equal(['499 CLIENT_LEFT']);
      expect(facts?.status).to.equal(499);
    });

    it('does not record 499 if the answer was complete', async () => {
      let left: AbortSignal | undefined;
      await run(
        withCall((call) => {
          left = call.left;
        }),
        answers('whole'),
      );
      expect(left?.aborted).to.equal(false);
    });
  });

  it('reads the protocol from the path, without the query', async () => {
    const seen: string[] = [];
    for (const path of ['/v1/messages?beta=true', '/cost/v1/chat/completions?x=1']) {
      const request = sampleRequest('POST', path);
      const note: AnyStep = async (call, _request, response) => {
        seen.push(`${call.protocol} ${call.path}`);
        response.end();
        return undefined;
      };
      await runPipeline(pipelineOf([note]), request, new SampleResponse(request));
    }
    expect(seen).to.deep.equal(['messages /v1/messages', 'chat /cost/v1/chat/completions']);
  });

  it('keeps the cause of an unexpected error for the log', () => {
    const cause = new Error('why');
    expect(toGatewayError(cause).options.cause).to.equal(cause);
  });
});
