import { type Check, compileCheck, type NameUse, type Schema } from '../base/settings';
import type { CallField, Declared } from '../calls/call';
import { type DeclaredNames, hint, type LocatedProblem, unknownNames, withHint } from './problems';
import type { GatewaySettings } from './schema';

/** The parts of a policy that reading a configuration needs; the function that handles calls is not among them. */
export interface PolicyShape {
  /** The policy's folder under `policies/` and its name in gateway.config.yml. */
  readonly name: string;
  /** A summary for documents and the configuration schema: the question about a call that the policy answers. */
  readonly summary: string;
  /** The JSON Schema of the policy's settings (`action` in the configuration). Settings that the schema does not name are refused. */
  readonly schema: Schema;
  readonly needs: readonly CallField[];
  readonly provides: readonly CallField[];
  /** Whether the policy always answers or throws. A pipeline must end with such a policy. */
  readonly answers?: true;
  /** Whether the policy itself limits how long it waits for the client, the ledger or an upstream. `stepTimeout` then does not apply to it. */
  readonly boundsItself?: true;
  /** Returns the facts that earlier steps of the pipeline must know about this policy. */
  declares?(settings: unknown): Declared;
}

const checks = new WeakMap<PolicyShape, Check<unknown>>();

/** Checks a policy's settings. Returns them with defaults filled in, or their problems. */
export function checkAction(policy: PolicyShape, action: unknown, names?: NameUse[]): ReturnType<Check<unknown>> {
  const check = checks.get(policy) ?? compileCheck<unknown>(policy.schema);
  checks.set(policy, check);
  return check(action, names);
}

/** A pipeline with its endpoints and policies, as configured. */
export interface PipelineSettings<P extends PolicyShape = PolicyShape> {
  readonly name: string;
  readonly endpoints: readonly EndpointSettings[];
  readonly steps: readonly StepSettings<P>[];
}

/** One policy of a pipeline, with its settings. */
export interface StepSettings<P extends PolicyShape = PolicyShape> {
  readonly policy: P;
  /** The policy's settings (`action` in the configuration), checked by the policy's schema and with the defaults filled in. */
  readonly settings: unknown;
}

export interface EndpointSettings {
  readonly name: string;
  readonly host: string | undefined;
  readonly paths: readonly string[];
  readonly methods: readonly string[] | undefined;
}

export function isAnyHost({ host }: Pick<EndpointSettings, 'host'>): boolean {
  return host === undefined || host === '*';
}

/** Returns the pipelines with their endpoints and their policies in order. `written` has all names in the file; `gateway` lacks the parts with mistakes. */
export function readPipelines<P extends PolicyShape>(
  gateway: GatewaySettings,
  written: DeclaredNames,
  policies: readonly P[],
  problems: LocatedProblem[],
): PipelineSettings<P>[] {
  const byName = new Map(policies.map((policy) => [policy.name, policy]));
  for (const [index, name] of gateway.policies.entries()) {
    if (byName.has(name)) continue;
    problems.push({
      path: ['policies', index],
      message: `policy "${name}" does not exist${hint(name, [...byName.keys()])}`,
    });
  }
  const endpointsOf = endpointReader(gateway, written, problems);
  const pipelines = Object.entries(gateway.pipelines).map(([name, pipeline]) => ({
    name,
    endpoints: endpointsOf(name, pipeline.apiEndpoints),
    steps: readSteps(name, pipeline, gateway.policies, byName, written, problems),
  }));
  problems.push(...unservedEndpoints(written));
  return pipelines;
}

/** Reports endpoints that no pipeline uses. Reports none while a pipeline names an unknown endpoint, because a spelling mistake may explain both. */
function unservedEndpoints({ endpoints, usedEndpoints }: DeclaredNames): LocatedProblem[] {
  if (usedEndpoints.some((each) => !endpoints.includes(String(each)))) return [];
  return endpoints
    .filter((name) => !usedEndpoints.includes(name))
    .map((name) => ({
      path: ['apiEndpoints', name],
      message: `no pipeline serves endpoint "${name}": add it to \`apiEndpoints\` of a pipeline, or remove it`,
    }));
}

/**
 * Returns a function that reads the endpoints of one pipeline, called once per pipeline. Each endpoint belongs to one pipeline, and each
 * path to one endpoint.
 */
function endpointReader(
  { apiEndpoints }: GatewaySettings,
  { endpoints: known }: DeclaredNames,
  problems: LocatedProblem[],
): (pipeline: string, names: readonly string[]) => EndpointSettings[] {
  const takenBy = new Map<string, string>();
  const mountedAt = new Map<string, string>();

  const readEndpoint = (name: string, pipeline: string, index: number): EndpointSettings | undefined => {
    const refuse = (message: string) =>
      void problems.push({ path: ['pipelines', pipeline, 'apiEndpoints', index], message });
    if (!known.includes(name)) return refuse(`endpoint "${name}" does not exist${hint(name, known)}`);
    const other = takenBy.get(name);
    if (other !== undefined) return refuse(`endpoint "${name}" already belongs to pipeline "${other}"`);
    takenBy.set(name, pipeline);
    const settings = apiEndpoints[name];
    if (settings === undefined) return undefined;
    checkPaths(name, settings, problems);
    checkMounts(name, settings, mountedAt, problems);
    return { name, host: settings.host, paths: settings.paths, methods: settings.methods };
  };

  return (pipeline, names) => names.flatMap((name, index) => readEndpoint(name, pipeline, index) ?? []);
}

/** Refuses a path that contains a pattern. The gateway compares paths literally, so no request would match it. */
function checkPaths(endpoint: string, { paths }: EndpointWritten, problems: LocatedProblem[]): void {
  for (const [index, path] of paths.entries()) {
    const [odd] = /[*?:()#{}\s]/.exec(path) ?? [];
    if (odd === undefined) continue;
    const message = `no request can match "${path}": paths are compared literally, and "${odd}" cannot be part of one`;
    problems.push({ path: ['apiEndpoints', endpoint, 'paths', index], message });
  }
}

type EndpointWritten = GatewaySettings['apiEndpoints'][string];

function checkMounts(
  endpoint: string,
  settings: EndpointWritten,
  mountedAt: Map<string, string>,
  problems: LocatedProblem[],
): void {
  for (const [index, path] of settings.paths.entries()) {
    const mount = `${settings.host?.toLowerCase() ?? '*'} ${path}`;
    const other = mountedAt.get(mount);
    if (other !== undefined) {
      problems.push({
        path: ['apiEndpoints', endpoint, 'paths', index],
        message: `"${path}" is already served by endpoint "${other}"`,
      });
    }
    mountedAt.set(mount, endpoint);
  }
}

function readSteps<P extends PolicyShape>(
  pipeline: string,
  settings: GatewaySettings['pipelines'][string],
  declared: readonly string[],
  byName: ReadonlyMap<string, P>,
  written: DeclaredNames,
  problems: LocatedProblem[],
): PipelineSettings<P>['steps'] {
  const there = new Set<string>();
  // A policy that does not exist could provide any field. Fields that later policies need are therefore not reported as missing.
  let isOrderKnown = true;
  const steps: StepSettings<P>[] = [];
  for (const [index, entry] of settings.policies.entries()) {
    const path = ['pipelines', pipeline, 'policies', index];
    const [[name, uses] = ['', null]] = Object.entries(entry);
    const policy = byName.get(name);
    if (policy === undefined) {
      problems.push({ path, message: `policy "${name}" does not exist${hint(name, [...byName.keys()])}` });
      isOrderKnown = false;
      continue;
    }
    if (!declared.includes(name)) problems.push({ path, message: `"${name}" must also be listed under \`policies\`` });
    for (const field of policy.needs.filter((each) => isOrderKnown && !there.has(each))) {
      const provider = [...byName.values()].find((each) => each.provides.includes(field));
      const remedy = provider === undefined ? 'no installed policy provides it' : `put "${provider.name}" before it`;
      problems.push({
        path,
        message: `"${name}" in pipeline "${pipeline}" needs \`${field}\` of the call, which no earlier policy provides: ${remedy}`,
      });
    }
    for (const field of policy.provides) there.add(field);
    const names: NameUse[] = [];
    const checked = checkAction(policy, uses?.[0]?.action ?? {}, names);
    const wrong = 'problems' in checked ? checked.problems.map(withHint) : unknownNames(names, written);
    problems.push(...wrong.map((each) => ({ ...each, path: [...path, name, 0, 'action', ...each.path] })));
    if ('problems' in checked) continue;
    steps.push({ policy, settings: checked.value });
  }
  const last = steps.at(-1)?.policy;
  if (last !== undefined && last.answers !== true && steps.length === settings.policies.length) {
    const path = ['pipelines', pipeline, 'policies', settings.policies.length - 1];
    problems.push({
      path,
      message: `pipeline "${pipeline}" ends without an answer: end it with a policy that answers, such as "sse-relay"`,
    });
  }
  return steps;
}
