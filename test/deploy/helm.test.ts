import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { typeCheck } from '../support/client-makers';
import { temporaryFolder } from '../support/configuration-folder';
import { installOwnPackage } from '../support/own-packages';
import { PROJECT, textOf } from '../support/sources';

const CHART = 'deploy/helm/tollgate';
const ADAPTER = 'deploy/helm/prometheus-adapter.yaml';
const OPERATOR = 'monitoring.coreos.com/v1';
const TEMPLATES = readdirSync(join(PROJECT, CHART, 'templates'));

type Values = Readonly<Record<string, unknown>>;

const DEFAULTS = parse(textOf(`${CHART}/values.yaml`)) as Values;
/** The values that an operator must supply. */
const GIVEN: Values = {
  image: { repository: 'registry.example.com/tollgate', tag: '1', pullPolicy: 'Always', pullSecrets: [] },
  secretName: 'tollgate-secrets',
  config: { gateway: textOf('gateway.config.yml'), system: textOf('system.config.yml') },
};

const isValid = new Ajv({ allErrors: true }).compile(JSON.parse(textOf(`${CHART}/values.schema.json`)));
const problems = (values: Values) =>
  isValid(values) ? [] : (isValid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);

const BLOCK = /\{\{- if (not )?(\.[\w.]+) \}\}\n((?:(?!\{\{- if)[\s\S])*?)\{\{- end \}\}\n/;
const EXPRESSION = /\{\{ (toJson )?(\.[\w.]+)( \| sha256sum)? \}\}/g;

/**
 * Renders a template by the few constructs that the chart uses, because the tests do not need Helm: a value, a value as JSON, its checksum, and
 * conditional lines. @throws at any other construct, and at a missing value
 */
function render(template: string, values: Values) {
  const root = { Values: values, Release: { Name: 'gateway' } };
  const valueAt = (path: string): unknown => {
    const value = path
      .slice(1)
      .split('.')
      .reduce<unknown>((at, name) => (at as Values | undefined)?.[name], root);
    assert.notEqual(value, undefined, `${path} is not in values.yaml`);
    return value;
  };
  const isSet = (value: unknown) => (Array.isArray(value) ? value.length > 0 : Boolean(value));
  let text = template;
  // Replaces the innermost block first.
  for (let block = BLOCK.exec(text); block !== null; block = BLOCK.exec(text)) {
    const [whole, not, path = '', lines = ''] = block;
    text = text.replace(whole, () => (isSet(valueAt(path)) === (not === undefined) ? lines : ''));
  }
  assert.doesNotMatch(text.replaceAll(EXPRESSION, ''), /\{\{/);
  text = text.replaceAll(EXPRESSION, (_, json, path, sum) => {
    const value = json === undefined ? String(valueAt(path)) : JSON.stringify(valueAt(path));
    return sum === undefined ? value : createHash('sha256').update(value).digest('hex');
  });
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
}

const renderAll = (values: Values) =>
  new Map(
    TEMPLATES.flatMap((name) => render(textOf(`${CHART}/templates/${name}`), values)).map((manifest) => [
      `${manifest.kind}/${manifest.metadata.name}`,
      manifest,
    ]),
  );

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Compiles manifests as literals of the types that are generated from the published schemas. @returns what the compiler says */
async function objections(manifests: readonly Manifest[]): Promise<string> {
  const lines = manifests.map((manifest, index) => {
    const { apiVersion, kind } = manifest;
    const library = apiVersion === OPERATOR ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
    return `import type { I${kind} as Type${index} } from '${library}/${apiVersion}';
export const manifest${index}: Type${index} = ${JSON.stringify(manifest)};`;
  });
  const compilerOptions = { strict: true, skipLibCheck: true, noEmit: true, module: 'preserve', types: [] };
  const folder = temporaryFolder({
    'manifests.ts': lines.join('\n'),
    'tsconfig.json': JSON.stringify({ compilerOptions, files: ['manifests.ts'] }),
  });
  symlinkSync(join(PROJECT, 'test/manifests/node_modules'), join(folder, 'node_modules'));
  return (await typeCheck(folder)).output;
}

describe(`the Helm chart of ${CHART}`, () => {
  const values = { ...DEFAULTS, ...GIVEN };
  const manifests = renderAll(values);
  const of = (name: string, among = manifests) => among.get(name) ?? assert.fail(`there is no ${name}`);
  const deployment = of('Deployment/gateway');
  const pod = deployment.spec.template;
  const [container] = pod.spec.containers;

  it('requires an image, a Secret and both configuration files, and the error names what is missing', () => {
    assert.deepEqual(problems(DEFAULTS).toSorted(), [
      '/config/gateway must NOT have fewer than 1 characters',
      '/config/system must NOT have fewer than 1 characters',
      '/image/repository must NOT have fewer than 1 characters',
      '/secretName must NOT have fewer than 1 characters',
    ]);
    assert.deepEqual(problems(values), []);
  });

  it('refuses unknown values, and secrets among the plain environment variables', () => {
    assert.notDeepEqual(problems({ ...values, replica: 3 }), []);
    for (const name of ['ADMIN_TOKEN', 'DATABASE_URL', 'OPENAI_API_KEY', 'PORT'])
      assert.notDeepEqual(problems({ ...values, environment: { [name]: 'x' } }), [], name);
    assert.deepEqual(problems({ ...values, environment: { PUBLIC_URL: 'https://gateway.example.com' } }), []);
  });

  it('uses every value that it declares', () => {
    const text = TEMPLATES.map((name) => textOf(`${CHART}/templates/${name}`)).join('');
    const leaves = Object.entries(DEFAULTS).flatMap(([name, value]) =>
      ['image', 'config', 'autoscaling', 'podMonitor', 'service', 'networkPolicy'].includes(name)
        ? Object.keys(value as object).map((member) => `${name}.${member}`)
        : [name],
    );
    assert.deepEqual(
      leaves.filter((leaf) => !text.includes(`.Values.${leaf} `)),
      [],
    );
  });

  it('runs nodes without privileges, which can write only to /data', () => {
    assert.equal(pod.spec.securityContext.runAsNonRoot, true);
    assert.equal(pod.spec.automountServiceAccountToken, false);
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const writable = container.volumeMounts.filter(({ readOnly }: { readOnly?: boolean }) => readOnly !== true);
    assert.deepEqual(writable, [{ name: 'data', mountPath: '/data' }]);
  });

  it('migrates the database before nodes are replaced, in a pod that no Service selects', () => {
    const { metadata, spec } = of('Job/gateway-migrations');
    assert.equal(metadata.annotations['helm.sh/hook'], 'pre-install,pre-upgrade');
    const [migrations] = spec.template.spec.containers;
    assert.deepEqual(migrations.args, ['dist/server.js', '--migrate']);
    // The ConfigMaps are not there yet.
    assert.deepEqual(migrations.envFrom, [{ secretRef: { name: 'tollgate-secrets' } }]);
    assert.equal(migrations.image, container.image);
    assert.deepEqual(migrations.securityContext, container.securityContext);
    const { selector } = of('Service/gateway').spec;
    assert.notEqual(spec.template.metadata.labels['app.kubernetes.io/name'], selector['app.kubernetes.io/name']);
    assert.equal(renderAll({ ...values, migrationsJob: false }).has('Job/gateway-migrations'), false);
  });

  it('probes nodes through the public listener, and lets nodes finish their calls before they stop', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    const paths = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path);
    assert.deepEqual(paths, ['/healthz', '/healthz', '/readyz']);
    assert.ok(pod.spec.terminationGracePeriodSeconds >= 25 + 10 + 5);
  });

  it('passes both configuration files and the plain variables unchanged, and secrets by name only', () => {
    const { data } = of('ConfigMap/gateway-config');
    assert.deepEqual(data, {
      'gateway.config.yml': textOf('gateway.config.yml'),
      'system.config.yml': textOf('system.config.yml'),
    });
    assert.deepEqual(container.envFrom, [
      { configMapRef: { name: 'gateway-environment' } },
      { secretRef: { name: 'tollgate-secrets' } },
    ]);
  });

  it('replaces nodes when system.config.yml or a variable changes, and not when gateway.config.yml does', () => {
    const { gateway, system } = GIVEN['config'] as { gateway: string; system: string };
    const annotations = (changed: Values) =>
      of('Deployment/gateway', renderAll({ ...values, ...changed })).spec.template.metadata.annotations;
    const now = pod.metadata.annotations;
    assert.deepEqual(annotations({ config: { gateway: `${gateway}#`, system } }), now);
    assert.notDeepEqual(annotations({ config: { gateway, system: `${system}#` } }), now);
    assert.notDeepEqual(annotations({ environment: { LOG_LEVEL: 'warn' } }), now);
  });

  it('selects its own pods in every selector', () => {
    const { labels } = pod.metadata;
    const selectors = [
      deployment.spec.selector.matchLabels,
      of('Service/gateway').spec.selector,
      of('Service/gateway-admin').spec.selector,
      of('PodDisruptionBudget/gateway').spec.selector.matchLabels,
      of('NetworkPolicy/gateway').spec.podSelector.matchLabels,
    ];
    for (const selector of selectors) assert.deepEqual(selector, labels);
    const named = container.ports.map(({ name }: { name: string }) => name);
    const targets = ['gateway', 'gateway-admin'].map((name) => of(`Service/${name}`).spec.ports[0].targetPort);
    assert.deepEqual(targets, named);
  });

  it('blocks all traffic to the admin listener unless `networkPolicy.admin` permits a source', () => {
    const ports = (among: typeof manifests) =>
      of('NetworkPolicy/gateway', among).spec.ingress.map(({ ports }: { ports: { port: string }[] }) => ports[0]?.port);
    assert.deepEqual(ports(manifests), ['public']);
    const admin = [{ podSelector: { matchLabels: { app: 'prometheus' } } }];
    const open = renderAll({ ...values, networkPolicy: { ...(DEFAULTS['networkPolicy'] as object), admin } });
    assert.deepEqual(ports(open), ['public', 'admin']);
    assert.deepEqual(of('NetworkPolicy/gateway', open).spec.ingress[1].from, admin);
  });

  it('has a fixed number of nodes by default; with autoscaling, the number follows the running calls', () => {
    assert.equal(deployment.spec.replicas, 2);
    assert.equal(manifests.has('HorizontalPodAutoscaler/gateway'), false);
    const autoscaling = { ...(DEFAULTS['autoscaling'] as object), enabled: true };
    const scaled = renderAll({ ...values, autoscaling });
    assert.equal('replicas' in of('Deployment/gateway', scaled).spec, false);
    const [{ pods }] = of('HorizontalPodAutoscaler/gateway', scaled).spec.metrics;
    assert.deepEqual(pods, {
      metric: { name: 'tollgate_calls_in_flight' },
      target: { type: 'AverageValue', averageValue: 200 },
    });
  });

  describe('compared with the published schemas of Kubernetes and of the Prometheus operator', function () {
    this.timeout(120_000);
    const everything = renderAll({
      ...values,
      autoscaling: { ...(DEFAULTS['autoscaling'] as object), enabled: true },
      podMonitor: { ...(DEFAULTS['podMonitor'] as object), enabled: true },
    });

    before(() => installOwnPackage('manifests'));

    it('has only manifests that match the schemas', async () => {
      assert.equal(everything.size, TEMPLATES.length + 2);
      assert.equal(await objections([...everything.values()]), '');
    });

    it('would fail the check if a manifest had an unknown member or lacked a required one', async () => {
      const { spec, ...rest } = of('HorizontalPodAutoscaler/gateway', everything);
      const { scaleTargetRef: _, ...untargeted } = spec;
      assert.match(await objections([{ ...rest, spec: { ...spec, maxNodes: 3 } }]), /'"maxNodes"' does not exist/);
      assert.match(await objections([{ ...rest, spec: untargeted }]), /'"scaleTargetRef"' is missing/);
    });
  });

  it('configures Prometheus to send the token of its Secret to the admin port of each pod', () => {
    const podMonitor = { enabled: true, labels: { release: 'prometheus' }, tokenSecret: 'tollgate-metrics' };
    const { metadata, spec } = of('PodMonitor/gateway', renderAll({ ...values, podMonitor }));
    assert.deepEqual(metadata.labels, podMonitor.labels);
    assert.deepEqual(spec.selector.matchLabels, pod.metadata.labels);
    const [{ port, path = '/metrics', authorization }] = spec.podMetricsEndpoints;
    assert.deepEqual([port, path], ['admin', '/metrics']);
    assert.deepEqual(authorization, { credentials: { name: 'tollgate-metrics', key: 'token' } });
  });

  it(`scales by the metric that the rule of ${ADAPTER} provides for pods`, () => {
    const [{ seriesQuery, resources }] = parse(textOf(ADAPTER)).rules.custom;
    const autoscaling = { ...(DEFAULTS['autoscaling'] as object), enabled: true };
    const [{ pods }] = of('HorizontalPodAutoscaler/gateway', renderAll({ ...values, autoscaling })).spec.metrics;
    assert.equal(seriesQuery.split('{')[0], pods.metric.name);
    assert.deepEqual(resources.overrides, { namespace: { resource: 'namespace' }, pod: { resource: 'pod' } });
  });
});
