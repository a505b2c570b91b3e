// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written
import { expect } from 'chai';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/configuration-folder';
import { PROJECT, textOf } from '../support/sources';

const SHIPPED = textOf('gateway.config.yml');
/** The shipped configuration, but one model states its own price and limits instead of taking them from a price list. */
const GATEWAY = SHIPPED.replace(
  'gpt-5.4-mini: { from: openai, aliases: [openai/gpt-5.4-mini] }',
  `gpt-5.4-mini:
        aliases: [openai/gpt-5.4-mini]
        context: 400000
        maxOutput: 128000
        price: { input: 0.75, output: 4.5, cacheRead: 0.075 }`,
);
const SYSTEM = textOf('system.config.yml');

function folder(gateway: string, system = SYSTEM): string {
  return temporaryFolder({ 'gateway.config.yml': gateway, 'system.config.yml': system });
}

const CREDENTIALS = { ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'o', DEMO_UPSTREAM_KEY: 'd' };

function tollgate(...args: string[]) {
  return tollgateIn({}, ...args);
}

function tollgateIn(environment: Readonly<Record<string, string>>, ...args: string[]) {
  return runTollgate(args, { ...CREDENTIALS, ...environment });
}

describe('tollgate config', () => {
  describe('validate', () => {
    it('prints that a folder is valid, with its revision, and exits with 0', async () => {
      const { status, out } = await tollgate('config', 'validate', PROJECT);
      expect(status).to.equal(0);
      expect(out).to.match(/is valid \(revision [0-9a-f]{12}\)/);
    });

    it('prints every problem of a folder with file, line and column, and exits with 1', async () => {
      const broken = GATEWAY.replace('maxAttempts: 4', 'maxAttemps: 4')
        .replace('tier: standard', 'tier: best')
        .replace('http:\n  port: ${PORT:-8080}', 'http:\n  port: ${NO_SUCH_PORT}');
      const { status, out, notes } = await tollgate('config', 'validate', folder(broken));
      expect(status).to.equal(1);
      expect(out).to.match(/^gateway\.config\.yml:\d+:\d+: .*NO_SUCH_PORT is not set/m);
      expect(out).to.match(
        /^gateway\.config\.yml:\d+:\d+: .*unknown setting "maxAttemps"; did you mean "maxAttempts"\?$/m,
      );
      expect(out).to.match(/^gateway\.config\.yml:\d+:\d+: serviceEndpoints\.demo\.tier: expected one of official/m);
      expect(notes).to.contain('3 problems');
    });

    it('prints problems and warnings as JSON with --json', async () => {
      const text = GATEWAY.replace('{ env: DEMO_UPSTREAM_KEY }', '{ env: NO_SUCH_KEY }');
      const { status, out } = await tollgate('--json', 'config', 'validate', folder(text));
      expect(status).to.equal(0);
      const { ok, problems, warnings } = JSON.parse(out);
      expect([ok, problems]).to.deep.equal([true, []]);
      expect(warnings).to.have.length(2);
      // No shipped list has a price for the code interpreter.
      expect(warnings[1].message).to.match(/^serviceEndpoints\.openai\.models: .*gpt-5\.4 \(codeInterpreter\)/);
      expect(warnings[0]).to.include({
        message: 'serviceEndpoints.demo.credential: upstream "demo" is disabled: NO_SUCH_KEY is not set',
      });
      expect(warnings[0].line).to.be.greaterThan(1);
    });

    it('prints each plugin that cannot be loaded with its line, and the YAML errors of the other file', async () => {
      const system = SYSTEM.replace('/plugins/usage/manifest', '/plugins/usage/manifesto')
        .replace('/plugins/models/manifest', '/core/base/ids')
        .replace(/\S+\/retention\/manifest/, 'acme-driver');
      const { status, out } = await tollgate('config', 'validate', folder('http: [', system));
      expect(status).to.equal(1);
      expect(out).to.match(/^system\.config\.yml:\d+:\d+: plugins\.usage\.package: .*manifesto cannot be loaded/m);
      expect(out).to.contain("Cannot find module 'acme-driver'; install it, or write ./acme-driver if it is a folder");
      expect(out).to.match(/^system\.config\.yml:\d+:\d+: plugins\.models\.package: .*is not a Tollgate plugin/m);
      expect(out).to.match(/^gateway\.config\.yml:\d+:\d+: /m);
    });
  });

  describe('diff', () => {
    const changed = GATEWAY.replace(
      'price: { input: 0.75, output: 4.5, cacheRead: 0.075 }',
      'price: { input: 0.8, output: 4.5, cacheRead: 0.075 }',
    )
      .replace('        /cost/v1/messages,\n', '')
      .replace('maxAttempts: 4', 'maxAttempts: 5')
      .replace('        aliases: [demo/demo-model]\n', '        aliases: [demo/demo-model, gpt-5-mini]\n');

    it('lists each price, route, candidate and setting that the other folder would change', async () => {
      const { status, out } = await tollgate('--json', 'config', 'diff', folder(GATEWAY), folder(changed));
      expect(status).to.equal(0);
      const { items } = JSON.parse(out);
      expect(items).to.deep.include({
        what: 'price openai/gpt-5.4-mini input',
        before: '0.75000000',
        after: '0.80000000',
      });
      expect(items).to.deep.include({ what: 'route POST /cost/v1/messages', before: 'cost', after: null });
      expect(items).to.deep.include({
        what: 'candidates gpt-5-mini',
        before: 'openai/gpt-5-mini',
        after: 'openai/gpt-5-mini, demo/demo-model',
      });
      expect(items.map(({ what }: { what: string }) => what)).to.include('pipeline quality failover maxAttempts');
    });

    it('reports no change if only comments or notation differ', async () => {
      const rewritten = `# a comment\n${GATEWAY.replace('methods: [POST]', 'methods:\n      - POST').replace('tier: standard', 'tier: "standard"')}`;
      const { status, out, notes } = await tollgate('config', 'diff', folder(GATEWAY), folder(rewritten));
      expect([status, out]).to.deep.equal([0, '']);
      expect(notes).to.contain('Both configurations are equal.');
    });

    it('prints the names of environment variables and never their values', async () => {
      const changes: readonly (readonly [from: string, to: string])[] = [
        ['url: https://api.openai.com', 'url: https://user:${WORD}@${WORD}.example'],
        ['credential: { env: OPENAI_API_KEY }', 'credential: { file: "${WORD}" }'],
        ['    adapter: messages\n', '    adapter: ["${ADAPTER}"]\n'],
        ['input: 0.75, output: 4.5', 'input: "${COUNT}", output: "${COUNT}"'],
        ['aliases: [openai/gpt-5.4-mini]', 'aliases: ["${WORD}"]'],
        ['context: 400000\n        maxOutput: 128000', 'context: ${COUNT}\n        maxOutput: ${COUNT}'],
        ['connect: 2s', 'connect: "${COUNT}ms"'],
        ['{ strategy: quality }', '{ strategy: quality, upstreams: ["${UPSTREAM}"] }'],
        ['        /quality/v1/messages,', '        "/${WORD}/v1/messages",'],
        ['host: "*.p.${DIRECT_DOMAIN:-localhost}"', 'host: "*.p.${WORD}"'],
        ['image: "${DEMO_DOCKER_IMAGE:-busybox}"', 'image: "${WORD}"'],
        ['host: ${ADMIN_HOST:-127.0.0.1}', 'host: "${WORD}"'],
      ];
      const text = changes.reduce((file, [from, to]) => {
        expect(file).to.contain(from);
        return file.replace(from, () => to);
      }, GATEWAY);
      const environment = { WORD: 'hush7531', COUNT: '7531', ADAPTER: 'messages', UPSTREAM: 'demo' };
      const { status, out, notes } = await tollgateIn(
        environment,
        ...['--json', 'config', 'diff', folder(GATEWAY), folder(text)],
      );
      expect(notes).to.equal('');
      expect(status).to.equal(0);
      expect(out).not.to.contain('7531');
      const { items } = JSON.parse(out) as { items: { what: string; after: string | null }[] };
      const said = new Map(items.map(({ what, after }) => [what, after]));
      expect(said.get('upstream openai url')).to.equal('https://user:${WORD}@${WORD}.example');
      expect(said.get('upstream anthropic adapter')).to.equal('${ADAPTER}');
      expect(said.get('price openai/gpt-5.4-mini output')).to.equal('${COUNT}');
      expect(said.get('model openai/gpt-5.4-mini maxOutput')).to.equal('${COUNT}');
      expect(said.get('upstream demo timeouts connect')).to.equal('${COUNT}ms');
      expect(said.get('pipeline quality strategy-routing upstreams')).to.equal('${UPSTREAM}');
      expect(said.get('route POST *.p.${WORD}/v1/messages')).to.equal('direct');
      expect(said.get('offerings demo-docker supplierSettings image')).to.equal('${WORD}');
    });

    it('exits with 1 and prints file and position of the error if one folder cannot be read', async () => {
      const { status, notes } = await tollgate('config', 'diff', PROJECT, folder('http: ['));
      expect(status).to.equal(1);
      expect(notes).to.match(/gateway\.config\.yml:1:\d+/);
    });
  });

  it('schema prints the JSON Schema of either configuration file, and refuses any other name with status 2', async () => {
    for (const file of ['gateway', 'system']) {
      const { out } = await tollgate('config', 'schema', file, PROJECT);
      expect(JSON.parse(out)).to.deep.equal(JSON.parse(textOf(`schemas/${file}.config.schema.json`)));
    }
    expect((await tollgate('config', 'schema', 'galaxy')).status).to.equal(2);
    const lost = await tollgate('config', 'schema', 'system', temporaryFolder({}));
    expect(lost.status).to.equal(1);
    expect(lost.notes).to.contain('system.config.yml: cannot be read');
  });
});
