import { generateApi } from 'swagger-typescript-api';
import type { Route, RouteAnswer } from '../../core/api/route';
import type { Schema } from '../../core/base/settings';
import { toOpenApi } from '../../plugins/openapi/schema';
import { nameOf, ownRoutes } from './own-api';

type JsonSchema = Readonly<Record<string, unknown>>;

const HEAD = `/** What the admin API and the interfaces of the pages answer. Made of the routes' own schemas: change these, then \`npm run shapes\`. */

`;

const OF_CLIENTS = /^\/(admin\/v1|console\/api|operator\/api)\//;

/** The types of all JSON answers that the CLI, the console and the operator's page read, by method and path. */
export async function shapesFile(): Promise<string> {
  const answers = ownRoutes()
    .filter(({ path }) => OF_CLIENTS.test(path))
    .map((route) => [nameOf(route), answerOf(route)] as const)
    .filter((entry): entry is [string, JsonSchema] => entry[1] !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const objects = answers.filter(([, { properties }]) => properties !== undefined).toReversed();
  const names = new Map(objects.map(([name, schema]) => [JSON.stringify(schema), name]));
  const properties = Object.fromEntries(answers.map(([name, schema]) => [name, withReferences(schema, names, name)]));
  const { files } = await generateApi({
    spec: {
      openapi: '3.0.3',
      info: { title: 'Tollgate', version: '1' },
      paths: {},
      components: { schemas: { Answers: { type: 'object', required: Object.keys(properties), properties } } },
    } as never,
    output: false,
    generateClient: false,
    generateUnionEnums: true,
    silent: true,
    primitiveTypeConstructs: ({ string, ...others }) => ({
      ...others,
      string: { ...(string as object), ...Object.fromEntries(answers.map(([name]) => [name, `Answers["${name}"]`])) },
    }),
    codeGenConstructs: (constructs) => ({ ...constructs, Keyword: { ...constructs.Keyword, Any: 'unknown' } }),
  });
  const text = files.map(({ fileContent }) => fileContent).join('\n');
  return HEAD + text.slice(text.indexOf('export interface Answers'));
}

/** The answer of a success; several, where its statuses have different ones. */
function answerOf({ answers }: Route): JsonSchema | undefined {
  const schemas = Object.entries<RouteAnswer>(answers)
    .filter(([status, { mediaType }]) => status.startsWith('2') && mediaType === undefined)
    .flatMap(([, { schema }]) => (schema === undefined ? [] : [JSON.stringify(plain(toOpenApi(schema as Schema)))]));
  const [first, ...others] = [...new Set(schemas)].map((text) => JSON.parse(text) as JsonSchema);
  return others.length === 0 || first === undefined ? first : { anyOf: [first, ...others] };
}

/**
 * Replaces each schema that equals the answer of a route by a reference to the first such route. If `value` is the whole answer
 * of the route `own`, it gets no reference to itself.
 */
function withReferences(value: unknown, names: ReadonlyMap<string, string>, own?: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const name = names.get(JSON.stringify(value));
  if (name !== undefined && name !== own) return { type: 'string', format: name };
  if (Array.isArray(value)) return value.map((each) => withReferences(each, names));
  return Object.fromEntries(Object.entries(value).map(([word, each]) => [word, withReferences(each, names)]));
}

/** Without words that say nothing to a type. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const { properties, ...rest } = value as JsonSchema;
  const kept = Object.entries(rest).filter(([word]) => !SILENT.has(word));
  return {
    ...Object.fromEntries(kept.map(([word, each]) => [word, plain(each)])),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties as JsonSchema).map(([name, each]) => [name, plain(each)]),
      ),
    }),
  };
}

const SILENT = new Set(['description', 'example', 'format', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength']);
