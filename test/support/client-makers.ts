import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Operation } from './documents';
import { PROJECT } from './sources';

/** The separate package with the generators and the linters. */
export const CLIENTS = join(PROJECT, 'test/clients');

/** One call of an operation. A text that begins with `$` stands for a value from an earlier answer, such as `$sandboxId`. */
export interface Step {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly header?: Readonly<Record<string, string>>;
  /** A JSON body. */
  readonly body?: unknown;
  /** A body of bytes. */
  readonly bytes?: string;
  /** Reads the answer as text: CSV, bytes or events. */
  readonly asText?: true;
  /** Values of the answer for later calls: a name, and the path of members. */
  readonly learn?: Readonly<Record<string, string>>;
}

/** A generator of clients from an OpenAPI document, and how a developer uses its client. */
export interface ClientMaker {
  readonly name: string;
  readonly program: string;
  readonly arguments: (input: string, output: string) => readonly string[];
  /** Returns the first lines of a calling file; `known` has `url` and `key`. */
  readonly opening: (listener: string) => string;
  /** Returns an expression that resolves to `{ status, data }`. */
  readonly call: (operation: Operation, step: Step) => string;
}

const openapiTypescript: ClientMaker = {
  name: 'openapi-typescript',
  program: 'openapi-typescript',
  arguments: (input, output) => [input, '-o', `${output}.d.ts`],
  opening: (listener) => `
    import createClient from 'openapi-fetch';
    import type { paths } from './${listener}';
    const authorization = 'Bearer ' + known['key'];
    const client = createClient<paths>({ baseUrl: known['url'] ?? '', headers: { authorization } });
    const answered = ({ response, data, error }: { response: Response; data?: unknown; error?: unknown }) =>
      ({ status: response.status, data: data ?? error });`,
  call: ({ method, path }, { header, body, bytes, asText, ...params }) => {
    const asBytes = `{ body: ${literal(bytes)}, bodySerializer: (body) => body, headers: { 'content-type': 'application/octet-stream' } }`;
    const options = [
      `params: ${literal({ path: params.path, query: params.query })}`,
      ...(header === undefined ? [] : [`headers: ${literal(header)}`]),
      ...(body === undefined ? [] : [`body: ${literal(body)}`]),
      ...(bytes === undefined ? [] : [`...${asBytes}`]),
      ...(asText === undefined ? [] : [`parseAs: 'text'`]),
    ];
    return `answered(await client.${method.toUpperCase()}(${literal(path)}, { ${options.join(', ')} }))`;
  },
};

const heyApi: ClientMaker = {
  name: '@hey-api/openapi-ts',
  program: 'openapi-ts',
  arguments: (input, output) => ['-i', input, '-o', output],
  opening: (listener) => `
    import * as api from './${listener}';
    import { client } from './${listener}/client.gen';
    client.setConfig({ baseUrl: known['url'] ?? '', auth: () => known['key'] });
    const answered = ({ response, data, error }: { response?: Response; data?: unknown; error?: unknown }) =>
      ({ status: response?.status, data: data ?? error });`,
  call: ({ operation }, { path, query, header, body, bytes, asText }) => {
    const options = [
      ...Object.entries({ path, query, headers: header, body })
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name}: ${literal(value)}`),
      ...(bytes === undefined ? [] : [`body: new Blob([${literal(bytes)}])`]),
      ...(asText === undefined ? [] : [`parseAs: 'text'`]),
    ];
    return `answered(await api.${operation.operationId}({ ${options.join(', ')} }))`;
  },
};

const orval: ClientMaker = {
  name: 'orval',
  program: 'orval',
  arguments: (input, output) => ['--input', input, '--output', `${output}.ts`],
  opening: (listener) => `
    import axios from 'axios';
    import * as api from './${listener}';
    axios.defaults.baseURL = known['url'] ?? '';
    axios.defaults.headers.common['authorization'] = 'Bearer ' + known['key'];
    axios.defaults.validateStatus = () => true;
    axios.defaults.adapter = 'fetch';`,
  call: ({ path, operation }, step) => {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => literal(step.path?.[name]));
    const options = step.header === undefined ? [] : [`{ headers: ${literal(step.header)} }`];
    return `await api.${operation.operationId}(${[...inPath, ...argumentsOf(operation, step), ...options].join(', ')})`;
  },
};

export const CLIENT_MAKERS: readonly ClientMaker[] = [openapiTypescript, heyApi, orval];

/** Returns the arguments of an Orval function: body and query are separate, and required ones come first. */
function argumentsOf({ requestBody, parameters }: Operation['operation'], step: Step): readonly string[] {
  const inQuery = (parameters as { in: string; required?: boolean }[]).filter((each) => each.in === 'query');
  const body = step.bytes === undefined ? literal(step.body) : `new Blob([${literal(step.bytes)}])`;
  return [
    ...(requestBody === undefined ? [] : [{ text: body, isRequired: requestBody.required === true }]),
    ...(inQuery.length === 0
      ? []
      : [{ text: literal(step.query), isRequired: inQuery.some(({ required }) => required === true) }]),
  ]
    .toSorted((one, other) => Number(other.isRequired) - Number(one.isRequired))
    .map(({ text }) => text);
}

/** Writes a value as source code, with the values of earlier answers. */
function literal(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').replaceAll(/"\$(\w+)"/g, `(known['$1'] ?? '')`);
}

/** What a calling file printed about one call. */
export interface Told {
  readonly operationId: string;
  readonly status: number;
  readonly data?: unknown;
}

/**
 * Writes a file that runs each step with the generated client and prints all answers as JSON. Operations in `uncalled` are compiled but not called.
 */
export function callerFile(
  maker: ClientMaker,
  listener: string,
  called: readonly (readonly [Operation, Step])[],
  uncalled: readonly (readonly [Operation, Step])[],
): string {
  return `
    const known: Record<string, string | undefined> = JSON.parse(process.argv[2] ?? '{}');
    ${maker.opening(listener)}
    const told: unknown[] = [];
    async function keep(operationId: string, answer: { status: number | undefined; data: unknown }, learn: Record<string, string>) {
      const data = answer.data instanceof Blob ? await answer.data.text() : answer.data;
      told.push({ operationId, status: answer.status, data });
      for (const [name, members] of Object.entries(learn))
        known[name] = String(members.split('.').reduce<unknown>((value, member) => (value as Record<string, unknown>)[member], data));
    }
    async function main() {
      ${called.map(([operation, step]) => `await keep(${literal(operation.operation.operationId)}, ${maker.call(operation, step)}, ${literal(step.learn ?? {})});`).join('\n')}
      console.log(JSON.stringify(told));
    }
    export async function uncalled() {
      ${uncalled.map(([operation, step]) => `${maker.call(operation, step)};`).join('\n')}
    }
    main().catch((error: unknown) => {
      console.error(error, JSON.stringify(told));
      process.exit(1);
    });
  `;
}

/** The compiler options of a strict developer. */
export const STRICT_COMPILER = {
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  target: 'es2022',
  module: 'preserve',
  moduleResolution: 'bundler',
  lib: ['es2023', 'dom', 'dom.iterable'],
  typeRoots: [join(PROJECT, 'node_modules/@types')],
  types: ['node'],
};

/** Runs a program of the package `test/clients`. */
export function runClientsProgram(name: string, args: readonly string[], cwd: string) {
  return runNode([join(CLIENTS, 'node_modules/.bin', name), ...args], cwd);
}

/** Type-checks the folder's project with the compiler of this project. */
export function typeCheck(folder: string) {
  const manifest = createRequire(__filename).resolve('typescript/package.json');
  return runNode([join(manifest, '../bin/tsc'), '-p', folder], folder);
}

/** Runs a TypeScript file and returns what it printed. */
export async function runCaller(file: string, known: Readonly<Record<string, string>>): Promise<readonly Told[]> {
  const { code, output } = await runNode(
    ['--import', createRequire(__filename).resolve('tsx'), file, JSON.stringify(known)],
    PROJECT,
  );
  if (code !== 0) throw new Error(output);
  return JSON.parse(output) as readonly Told[];
}

/** Switches telemetry and version checks off. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };

/** Runs Node asynchronously, because the upstream answers in this process. */
async function runNode(args: readonly string[], cwd: string): Promise<{ code: number; output: string }> {
  const options = { cwd, env: { ...process.env, ...QUIET }, timeout: 100_000, maxBuffer: 64 * 1_048_576 };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [...args], options);
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code: code ?? -1, output: `${stdout}${stderr}` };
  }
}
