import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { temporaryFolder } from '../support/configuration-folder';
import { readDocuments } from '../support/documents';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { PROJECT } from '../support/sources';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** A program that uses only the generated client. */
const CALLER = `
import { Api as Public } from './public';
import { Api as Admin } from './admin';

async function main([publicUrl = '', adminUrl = '', token = '']: string[]): Promise<void> {
  const admin = new Admin({ baseUrl: adminUrl, baseApiParams: { headers: { authorization: 'Bearer ' + token } } });
  const { data: account } = await admin.admin.postAdminV1Accounts({ name: 'generated' });
  const amount = { amountUsd: '10', idempotencyKey: 'first' };
  await admin.admin.postAdminV1AccountsByAccountIdCredits(account.id, amount);
  const { data: key } = await admin.admin.postAdminV1AccountsByAccountIdKeys(account.id, { name: 'app' });
  const gateway = new Public({ baseUrl: publicUrl, baseApiParams: { headers: { 'x-api-key': key.key } } });
  const called = await gateway.v1.postV1Messages({
    model: '${MODEL}',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hello' }],
  });
  const { data: balance } = await gateway.v1.getV1Balance();
  // The record is written within a second after the end of the call.
  let usage = (await gateway.v1.getV1Usage({ limit: 1 })).data;
  for (let look = 0; usage.items.length === 0 && look < 100; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    usage = (await gateway.v1.getV1Usage({ limit: 1 })).data;
  }
  const refused = await gateway.v1.getV1UsageByRequestId('no-such-request').catch((answer: unknown) => answer);
  const { error } = refused as { error: { error: { code: string } } };
  console.log(JSON.stringify([called.headers.get('x-ai-cost'), balance.balanceUsd, usage.items.length, error.error.code]));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(JSON.stringify(error), error);
  process.exit(1);
});
`;

const COMPILER_OPTIONS = {
  strict: true,
  target: 'es2022',
  module: 'commonjs',
  lib: ['es2022', 'dom'],
  typeRoots: [join(PROJECT, 'node_modules/@types')],
  types: ['node'],
  skipLibCheck: true,
  outDir: 'out',
};

describe('A client generated from the OpenAPI documents', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: { input: 1_000, output: 200 } }));
    gateway = await startGateway({ stores: 'real', upstreams: { acme: { url: upstream.url } } });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  it('compiles under the strictest rules, and its calls succeed', async () => {
    const folder = temporaryFolder({
      'caller.ts': CALLER,
      'package.json': '{ "type": "commonjs" }',
      'tsconfig.json': JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: ['caller.ts'] }),
    });
    const documents = await readDocuments(gateway);
    for (const listener of ['public', 'admin'] as const) {
      mkdirSync(join(folder, 'documents'), { recursive: true });
      const path = join(folder, 'documents', `${listener}.json`);
      writeFileSync(path, JSON.stringify(documents[listener]));
      await run(binaryOf('swagger-typescript-api'), [
        'generate',
        '--path',
        path,
        '--output',
        folder,
        '--name',
        `${listener}.ts`,
        '--silent',
      ]);
      expect(readFileSync(join(folder, `${listener}.ts`), 'utf8')).to.contain('class Api');
    }
    await run(binaryOf('typescript', 'tsc'), ['-p', folder]);
    const said = await run(join(folder, 'out', 'caller.js'), [gateway.url, gateway.adminUrl, gateway.adminToken]);
    expect(JSON.parse(said)).to.deep.equal(['0.00600000', '9.99400000', 1, 'NOT_FOUND']);
  });
});

/** Returns the path of a package's program, wherever npm has installed the package. */
function binaryOf(name: string, bin = name): string {
  const manifest = createRequire(__filename).resolve(`${name}/package.json`);
  const { bin: bins } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> };
  return join(manifest, '..', bins[bin] ?? '');
}

/** Runs a program and returns its output. It is asynchronous because the upstream answers in this process. */
async function run(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { timeout: 90_000 });
  return stdout;
}
