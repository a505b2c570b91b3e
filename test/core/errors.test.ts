import { expect } from 'chai';
import { ERRORS, type ErrorCode, errorEnvelope, fail, GatewayError } from '../../core/errors';

const codes = Object.keys(ERRORS) as ErrorCode[];

describe('the error catalogue', () => {
  it('names every error in capitals and describes it in a sentence', () => {
    for (const code of codes) {
      expect(code).to.match(/^[A-Z]+(_[A-Z]+)*$/);
      expect(ERRORS[code].summary, code).to.match(/^[A-Z].*\.$/);
    }
  });

  it('has one envelope type for each status', () => {
    const types = {
      400: 'invalid_request_error',
      401: 'authentication_error',
      402: 'Payment Required',
      403: 'permission_error',
      404: 'not_found_error',
      405: 'invalid_request_error',
      408: 'invalid_request_error',
      409: 'conflict_error',
      410: 'gone_error',
      412: 'conflict_error',
      413: 'invalid_request_error',
      415: 'invalid_request_error',
      417: 'invalid_request_error',
      429: 'rate_limit_error',
      431: 'invalid_request_error',
      500: 'server_error',
      502: 'server_error',
      503: 'server_error',
      504: 'server_error',
    } as const;
    for (const code of codes) expect(ERRORS[code].type, code).to.equal(types[ERRORS[code].status]);
  });

  it('tells a client to retry only an error that may not occur again', () => {
    for (const code of codes) {
      const { status, retryable } = ERRORS[code];
      // The repeated call waits for the first one, which will have ended by then.
      const waits = code === 'IDEMPOTENCY_KEY_IN_USE';
      expect(retryable, code).to.equal(status >= 500 || status === 429 || status === 408 || waits);
    }
  });

  it('gives every error the same envelope', () => {
    for (const code of codes) {
      expect(errorEnvelope(fail(code), 'req_1')).to.deep.equal({
        type: 'error',
        request_id: 'req_1',
        error: {
          type: ERRORS[code].type,
          code,
          message: ERRORS[code].summary,
          param: null,
          details: {},
          retryable: ERRORS[code].retryable,
        },
      });
    }
  });

  it('includes message, param and details if they are given, and never the cause', () => {
    const error = fail('INVALID_FIELD', {
      message: 'max_tokens is missing',
      param: 'max_tokens',
      details: { problems: [] },
      cause: new Error('hush'),
    });
    const text = JSON.stringify(errorEnvelope(error, 'req_1'));
    expect(text).to.contain('"message":"max_tokens is missing","param":"max_tokens","details":{"problems":[]}');
    expect(text).not.to.contain('hush');
    expect(error).to.be.instanceOf(GatewayError);
    expect(error.cause).to.be.instanceOf(Error);
  });
});
