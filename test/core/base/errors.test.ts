import { expect } from 'chai';
import { ERRORS, type ErrorCode, errorEnvelope, fail, GatewayError } from '../../../core/base/errors';

const codes = Object.keys(ERRORS) as ErrorCode[];

describe('the error catalogue', () => {
  it('has a name in capitals and a sentence as the description for every error', () => {
    for (const code of codes) {
      expect(code).to.match(/^[A-Z]+(_[A-Z]+)*$/);
      expect(ERRORS[code].summary, code).to.match(/^[A-Z].*\.$/);
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

  it("adds message, param and details to an error's envelope if they are set, and never the cause", () => {
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
