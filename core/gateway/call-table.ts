import type { IncomingMessage, ServerResponse } from 'node:http';
import { Call } from '../calls/call';
import { traceCall } from '../calls/call-trace';
import type { EndpointSettings, PipelineSettings } from '../configuration/pipelines';
import { isDirectHost, pathOf } from '../http/request-head';
import { compilePipeline, type PipelineGateway } from './pipeline';
import type { Policy } from './policy';

/** Answers a request. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Finds the pipeline of a request in a table of the endpoints' exact paths. With `fastLane: true`, the gateway also runs the pipeline from
 * here, without Express.
 */
export interface CallTable {
  /** Finds the endpoint that serves a request. `host` is the result of `hostOf`. */
  find(request: AddressedRequest, host: string): CallPlace;
}

/** The part of a request that decides whether it is a call. */
type AddressedRequest = Pick<IncomingMessage, 'url' | 'method'>;

export type CallPlace =
  | ServedCall
  | { readonly kind: 'other-method'; readonly allow: readonly string[] }
  | { readonly kind: 'nothing' };

export interface ServedCall {
  readonly kind: 'call';
  /** Creates the call that the pipeline's steps receive. Code that runs the steps without `serve` calls this first. */
  open(request: IncomingMessage, response: ServerResponse): Call;
  readonly serve: Listener;
}

interface Mount {
  readonly host: ReturnType<typeof hostTest>;
  readonly methods: readonly string[] | undefined;
  readonly place: ServedCall;
}

const NOTHING: CallPlace = { kind: 'nothing' };

export function compileCallTable(pipelines: readonly PipelineSettings<Policy>[], gateway: PipelineGateway): CallTable {
  const byPath = new Map<string, Mount[]>();
  for (const pipeline of pipelines) {
    const run = compilePipeline(pipeline, gateway);
    const open: ServedCall['open'] = (request, response) => {
      const call = gateway.openCalls.add(new Call(request, response));
      traceCall(call, request, response);
      return call;
    };
    const place: ServedCall = {
      kind: 'call',
      open,
      // Node reports a request's head before the body that arrived with it. The steps run after both, so that a small body is already readable.
      serve: (request, response) => process.nextTick(run, open(request, response), request, response),
    };
    for (const endpoint of pipeline.endpoints) {
      const mount: Mount = { host: hostTest(endpoint), methods: endpoint.methods, place };
      for (const path of endpoint.paths) byPath.set(path, [...(byPath.get(path) ?? []), mount]);
    }
  }
  // An endpoint for one host comes before one for any host, whatever their order in the file.
  for (const mounts of byPath.values())
    mounts.sort((one, two) => Number(two.host !== undefined) - Number(one.host !== undefined));
  return { find: (request, host) => find(byPath, request, host) };
}

function find(byPath: ReadonlyMap<string, readonly Mount[]>, request: AddressedRequest, host: string): CallPlace {
  const mounts = byPath.get(pathOf(request));
  if (mounts === undefined) return NOTHING;
  const isDirect = isDirectHost(host);
  let allow: Set<string> | undefined;
  for (const mount of mounts) {
    // An endpoint for any host does not match a host that names an upstream. A client that pins an upstream must not be routed elsewhere.
    if (mount.host === undefined ? isDirect : !mount.host(host)) continue;
    if (mount.methods === undefined || mount.methods.includes(request.method ?? '')) return mount.place;
    allow ??= new Set();
    for (const method of mount.methods) allow.add(method);
  }
  return allow === undefined ? NOTHING : { kind: 'other-method', allow: [...allow] };
}

/** The longest host name in DNS, in characters, with a trailing dot. */
const MAX_HOST_LENGTH = 254;

/** Returns the test for an endpoint's host; undefined if the endpoint accepts any host. `*` matches one label, as in Express Gateway. */
export function hostTest({ host }: EndpointSettings): ((host: string) => boolean) | undefined {
  if (host === undefined || host === '*') return undefined;
  const wanted = host.toLowerCase();
  if (!wanted.includes('*')) return (asked) => asked === wanted;
  const pattern = new RegExp(`^${wanted.split('*').map(escapeRegExp).join('[^.]+')}$`);
  // The length is checked first, because a pattern with several `*` in one label may take more than linear time.
  return (asked) => asked.length <= MAX_HOST_LENGTH && pattern.test(asked);
}

function escapeRegExp(text: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
}
