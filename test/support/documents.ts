import { Ajv, type ValidateFunction } from 'ajv';
import { expect } from 'chai';
import type { Answered, TestGateway } from './gateway';

// biome-ignore lint/suspicious/noExplicitAny: tests look at any part of a document
export type Document = any;

export interface Operation {
  readonly path: string;
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly operation: any;
}

export async function readDocuments(gateway: TestGateway): Promise<{ public: Document; admin: Document }> {
  const [open, admin] = await Promise.all([
    gateway.call('/openapi.json', { method: 'GET' }),
    gateway.admin('GET', '/admin/v1/openapi.json'),
  ]);
  return { public: open.json, admin: admin.json };
}

export function operationsOf(document: Document): readonly Operation[] {
  return Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
}

/** Returns the same gateway, but asserts that its document declares every answer to `call`. */
export async function asDocumented(gateway: TestGateway): Promise<TestGateway> {
  const { public: document } = await readDocuments(gateway);
  const operations = operationsOf(document).map((each) => ({ ...each, pattern: patternOf(each.path) }));
  return {
    ...gateway,
    call: async (path, options = {}) => {
      const answer = await gateway.call(path, options);
      const method = (options.method ?? 'POST').toLowerCase();
      const [plain = ''] = path.split('?');
      const found = operations.find((each) => each.method === method && each.pattern.test(plain));
      if (found !== undefined) expectAnswer(found, answer, document.components);
      return answer;
    },
  };
}

/** Converts a path to a pattern. Answers of a sandbox's program below `/proxy/` are not documented. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '(?!proxy/)[^/]+')}$`);
}

function expectAnswer({ method, path, operation }: Operation, { status, json, text }: Answered, components: object) {
  const what = `${method} ${path} ${status}`;
  const said = operation.responses[String(status)];
  expect(said, `${what} is not in the document: ${text}`).to.not.equal(undefined);
  if (status >= 400) expect(said.description, what).to.contain(`\`${json.error.code}\``);
  const schema = said.content?.['application/json']?.schema;
  if (schema !== undefined && json !== undefined) expectShape(schema, json, what, components);
}

const ajv = new Ajv({ strict: false, validateFormats: false });
const compiled = new WeakMap<object, ValidateFunction>();

/** Asserts a schema. ajv knows `nullable`; references point into the document. */
export function expectShape(schema: object, value: unknown, what: string, components: object = {}): void {
  const validate = compiled.get(schema) ?? ajv.compile({ ...closed(schema), components });
  compiled.set(schema, validate);
  expect(
    validate(value),
    `${what}: ${JSON.stringify(validate.errors)} ${JSON.stringify(value).slice(0, 500)}`,
  ).to.equal(true);
}

/** Forbids members that the document does not list. */
function closed<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_, part) =>
    part?.type === 'object' && part.properties !== undefined ? { additionalProperties: false, ...part } : part,
  ) as T;
}
