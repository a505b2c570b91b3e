import { expect } from 'chai';
import { ERRORS } from '../../core/errors';
import { errorCatalogue, errorCodes, errorResponses } from '../../plugins/openapi/errors';
import { textOf } from '../support/sources';

/** Matches `| 400 | invalid_request_error | INVALID_JSON | no | The body is not valid JSON. |`. */
const ROW = /^\| (\d{3}) +\| ([^|]+?) +\| `([A-Z_]+)` +\| (yes|no) +\| (.+?) +\|$/gm;

const catalogue = Object.entries(ERRORS).map(([code, { status, type, retryable, summary }]) => ({
  code,
  status,
  type,
  retryable,
  summary,
}));

const documented = [...textOf('docs/errors.md').matchAll(ROW)].map(([, status, type, code, retryable, summary]) => ({
  code: code ?? '',
  status: Number(status),
  type: type ?? '',
  retryable: retryable === 'yes',
  summary: summary ?? '',
}));

describe('docs/errors.md', () => {
  it('has every error of the catalogue, and no other', () => {
    expect(documented.map(({ code }) => code)).to.have.members(catalogue.map(({ code }) => code));
  });

  it('has the status, type, retry advice and message of the catalogue for each error', () => {
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

  it('stand under the status that docs/errors.md gives them', () => {
    for (const { code, status } of documented) {
      const [[answered, response] = []] = Object.entries(errorResponses([code as keyof typeof ERRORS]));
      expect([code, answered]).to.deep.equal([code, String(status)]);
      expect(JSON.stringify(response)).to.contain(code);
    }
  });
});
