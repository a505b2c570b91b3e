import { expect } from 'chai';
import { ERRORS } from '../../core/base/errors';
import { errorCatalogue, errorCodes, errorResponses } from '../../plugins/openapi/errors';
import { textOf } from '../support/sources';

/** Matches `| 400 | `INVALID_JSON` | The body is not valid JSON. |`. */
const ROW = /^\| (\d{3}) +\| `([A-Z_]+)` +\| (.+?) +\|$/gm;

/** Matches `| 409, 412 | `conflict_error` |`. */
const TYPES = /^\| (\d{3}(?:, \d{3})*) +\| `([A-Za-z_ ]+)` +\|$/gm;

const catalogue = Object.entries(ERRORS).map(([code, { status, type, retryable, summary }]) => ({
  code,
  status,
  type,
  retryable,
  summary,
}));

const page = textOf('docs/errors.md');
const types = new Map(
  [...page.matchAll(TYPES)].flatMap(([, statuses = '', type]) =>
    statuses.split(', ').map((status) => [Number(status), type ?? ''] as const),
  ),
);

/** The page says that a repeat can help after these. */
const mayRepeat = (status: number, code: string) =>
  status === 408 || status === 429 || status >= 500 || code === 'IDEMPOTENCY_KEY_IN_USE';

const documented = [...page.matchAll(ROW)].map(([, status, code = '', summary = '']) => ({
  code,
  status: Number(status),
  type: types.get(Number(status)) ?? '',
  retryable: mayRepeat(Number(status), code),
  summary,
}));

describe('docs/errors.md', () => {
  it('lists every error of the error catalog, and no other', () => {
    expect(documented.map(({ code }) => code)).to.have.members(catalogue.map(({ code }) => code));
  });

  it('states for each error the same status, type, retry advice and message as the error catalog', () => {
    for (const error of catalogue) expect(documented.find(({ code }) => code === error.code)).to.deep.equal(error);
  });

  it('lists each error once, by status', () => {
    const statuses = documented.map(({ status }) => status);
    expect(statuses).to.deep.equal([...statuses].sort((one, two) => one - two));
    expect(new Set(documented.map(({ code }) => code)).size).to.equal(documented.length);
  });
});

describe('the errors of the OpenAPI documents', () => {
  it('have the status, type, retry advice and message of docs/errors.md', () => {
    expect(errorCatalogue()).to.have.deep.members(documented);
    expect(errorCodes().enum).to.have.members(documented.map(({ code }) => code));
  });

  it('are listed under the status that docs/errors.md has for them', () => {
    for (const { code, status } of documented) {
      const [[answered, response] = []] = Object.entries(errorResponses([code as keyof typeof ERRORS]));
      expect([code, answered]).to.deep.equal([code, String(status)]);
      expect(JSON.stringify(response)).to.contain(code);
    }
  });
});
