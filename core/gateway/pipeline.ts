import type { IncomingMessage, ServerResponse } from 'node:http';
import { toGatewayError } from '../api/thrown';
import type { Call, Declared } from '../calls/call';
import type { OpenCalls } from '../calls/open-calls';
import { ROUTING_HEADER, routingHeader } from '../calls/routing-header';
import type { Configuration } from '../configuration/configuration';
import { checkAction, type PipelineSettings, type StepSettings } from '../configuration/pipelines';
import { fail, type GatewayError } from '../errors';
import { CLIENT_LEFT_STATUS, ClientLeft } from '../http/client-left';
import { sendError } from '../http/http';
import { inTime } from '../in-time';
import { leavesNothing } from '../left-open';
import type { JoiningCall } from '../rollouts/live-rollouts';
import { describeFault } from '../thrown';
import { enter, ownerNumber, within } from '../watchdog';
import type { Gateway } from './gateway';
import type { AnyStep, Policy } from './policy';

class StepTimeout extends Error {
  override readonly name = 'StepTimeout';
}

/**
 * Waits for a step at most this long. Without a limit, a policy that never resolves would keep a call, its connection and its hold
 * for ever. A late result is ignored. A policy that bounds its own waiting has no such limit.
 * @throws StepTimeout with the name of the policy
 */
function stepInTime<T>(
  step: PromiseLike<T>,
  { name, boundsItself }: Pick<Policy, 'name' | 'boundsItself'>,
  timeoutMs: number,
): PromiseLike<T> {
  if (boundsItself === true) return step;
  const late = () =>
    new StepTimeout(`the policy "${name}" has not finished its step within ${timeoutMs} ms (stepTimeout)`);
  return inTime(step, timeoutMs, late);
}

/** The parts of the gateway that a pipeline needs: those that its policies use, and those that run the steps. */
export interface PipelineGateway extends Gateway {
  readonly configuration: Configuration<Policy>;
  readonly openCalls: OpenCalls;
  /** How long a step may take whose policy does not bound its own waiting. */
  readonly stepTimeoutMs: number;
}

/** A policy with its settings, ready to run. */
export interface PreparedStep {
  readonly policy: Policy;
  readonly step: AnyStep;
  /** The policy's number for the watchdog. */
  readonly owner: number;
}

/** Prepares a step with its settings. If a rollout changes them, each call gets the settings of its group. */
export function prepareStep(
  { policy, settings }: StepSettings<Policy>,
  pipeline: string,
  gateway: Gateway,
): PreparedStep {
  const name = `policy ${policy.name}`;
  const owner = ownerNumber(name);
  const prepare = (own: unknown) => within(owner, () => leavesNothing(name, () => policy.prepare(own, gateway)));
  const step = prepare(settings);
  for (const rollout of gateway.configuration.rollouts) {
    const { change } = rollout;
    if (change.is !== 'settings' || change.pipeline !== pipeline) continue;
    const changed = change.settings[policy.name];
    if (changed === undefined) continue;
    const checked = checkAction(policy, { ...(settings as object), ...changed });
    if ('problems' in checked) throw new Error(`rollout "${rollout.name}" has settings that were not checked`);
    const other = prepare(checked.value);
    // The call has its key here, because the check of the configuration rejects a rollout that changes a step before the key is known.
    const groupOf = (call: Call) => gateway.rollouts.join(rollout, call as JoiningCall)?.group;
    return { policy, owner, step: (call, ...rest) => (groupOf(call) === 'treatment' ? other : step)(call, ...rest) };
  }
  return { policy, owner, step };
}

/** Returns a pipeline as one function. It does the same as the policies that Express Gateway mounts one by one, and never rejects. */
export function compilePipeline(
  pipeline: PipelineSettings<Policy>,
  gateway: PipelineGateway,
): (call: Call, request: IncomingMessage, response: ServerResponse) => Promise<unknown> {
  const steps = pipeline.steps.map((step) => prepareStep(step, pipeline.name, gateway));
  return (call, request, response) => runSteps(steps, call, request, response, gateway);
}

/** Returns the facts that the steps of a pipeline declare to earlier ones. */
export function declaredBy({ steps }: PipelineSettings): Declared {
  return Object.assign({}, ...steps.map(({ policy, settings }) => policy.declares?.(settings))) as Declared;
}

/** Runs one step. Returns true if the next is to follow. It answers errors of the step itself, so it never rejects. */
export function runStep(
  prepared: PreparedStep,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: PipelineGateway,
): Promise<boolean> {
  return runSteps([prepared], call, request, response, gateway);
}

async function runSteps(
  steps: readonly PreparedStep[],
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: PipelineGateway,
): Promise<boolean> {
  call.beginStep();
  let goesOn = false;
  try {
    for (const prepared of steps) {
      const { policy } = prepared;
      try {
        const answer = takeStep(prepared, call, request, response);
        // A result that is already there is not awaited.
        const isLater = answer !== undefined && 'then' in answer;
        const provided = isLater ? await stepInTime(answer, policy, gateway.stepTimeoutMs) : answer;
        if (provided !== undefined) Object.assign(call, provided);
        // The call stops here if its client has left. An answer that the upstream has begun is still read and charged.
        if (call.hasLeft && !response.headersSent && !isReadOn(call)) throw new ClientLeft();
      } catch (error) {
        await refuse(error, policy.name, call, request, response, gateway);
        return false;
      }
      if (response.headersSent) return false;
    }
    goesOn = true;
    return true;
  } finally {
    call.endStep(goesOn);
  }
}

/** True if the client left after an upstream took the request. Later steps then settle its answer. */
function isReadOn({ leftAtMs, answer }: Call): boolean {
  return leftAtMs !== undefined && answer !== undefined;
}

function takeStep(
  { step, owner }: PreparedStep,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
): ReturnType<AnyStep> {
  const outer = enter(owner);
  try {
    return step(call, request, response);
  } finally {
    enter(outer);
  }
}

async function refuse(
  thrown: unknown,
  policyName: string,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: PipelineGateway,
): Promise<void> {
  if (call.leftAtMs !== undefined || (call.cutOffBy === undefined && thrown instanceof ClientLeft)) {
    call.facts.status = CLIENT_LEFT_STATUS;
    call.facts.errorCode = 'CLIENT_LEFT';
    await call.refusal(fail('INTERNAL_ERROR', { cause: thrown })).catch(() => undefined);
    return call.end();
  }
  let error = toGatewayError(call.cutOffBy ?? thrown);
  recordFacts(call, error);
  if (error.code === 'INTERNAL_ERROR') {
    const fault = describeFault(error.options.cause ?? error);
    gateway.log.error({ requestId: call.id, policy: policyName, error: fault }, 'a policy failed');
  }
  try {
    error = await call.refusal(error);
  } catch (hookFailure) {
    error = toGatewayError(hookFailure);
  }
  recordFacts(call, error);
  await call.end();
  if (response.headersSent) return void response.destroy();
  response.setHeader('x-routing-attempts', String(call.facts.attempts));
  response.setHeader('x-routing-fallback', String(call.facts.fallback));
  const routing = routingHeader(call.facts.routing);
  if (routing !== undefined) response.setHeader(ROUTING_HEADER, routing);
  sendError(request, response, error, call.id);
}

function recordFacts(call: Call, error: GatewayError): void {
  call.facts.status = error.status;
  call.facts.errorCode = error.code;
}
