import type { IncomingMessage, ServerResponse } from 'node:http';
import { toGatewayError } from '../api/thrown';
import type { Call, Declared } from '../calls/call';
import type { OpenCalls } from '../calls/open-calls';
import { ROUTING_HEADER, routingHeader } from '../calls/routing-header';
import type { Configuration } from '../configuration/configuration';
import type { PipelineSettings, StepSettings } from '../configuration/pipelines';
import { checkAction } from '../configuration/policy-shape';
import { fail, type GatewayError } from '../errors';
import { CLIENT_LEFT_STATUS, ClientLeft } from '../http/client-left';
import { sendError } from '../http/http';
import { leavesNothing } from '../left-open';
import type { JoiningCall } from '../rollouts/live-rollouts';
import { describeFault } from '../thrown';
import { enter, ownerNumber, within } from '../watchdog';
import type { Gateway } from './gateway';
import type { AnyStep, Policy } from './policy';
import { stepInTime } from './step-timeout';

/** What pipelines are compiled with: what their policies are given, and what runs them. */
export interface PipelineGateway extends Gateway {
  readonly configuration: Configuration<Policy>;
  readonly openCalls: OpenCalls;
  /** How long a policy that does not bound its own waiting may take for its step. */
  readonly stepTimeoutMs: number;
}

/** A policy with its settings, ready to run. */
export interface PreparedStep {
  readonly policy: Policy;
  readonly step: AnyStep;
  /** Of the policy, for the watchdog. */
  readonly owner: number;
}

/** With the settings it has, or, where a rollout changes them, with those that the call's group has. */
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
    // Checked with the configuration: nobody changes what runs before it is known who is calling.
    const groupOf = (call: Call) => gateway.rollouts.join(rollout, call as JoiningCall)?.group;
    return { policy, owner, step: (call, ...rest) => (groupOf(call) === 'candidate' ? other : step)(call, ...rest) };
  }
  return { policy, owner, step };
}

/** The same pipeline that Express Gateway mounts policy by policy, as one function. Never rejects. */
export function compilePipeline(
  pipeline: PipelineSettings<Policy>,
  gateway: PipelineGateway,
): (call: Call, request: IncomingMessage, response: ServerResponse) => Promise<unknown> {
  const steps = pipeline.steps.map((step) => prepareStep(step, pipeline.name, gateway));
  return (call, request, response) => runSteps(steps, call, request, response, gateway);
}

/** What the steps of a pipeline tell those before them. */
export function declaredBy({ steps }: PipelineSettings): Declared {
  return Object.assign({}, ...steps.map(({ policy, settings }) => policy.declares?.(settings))) as Declared;
}

/** Runs one step; true when the next is to follow. What the step throws is answered here, so this never rejects. */
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
        // Nobody waits for what is there already.
        const isLater = answer !== undefined && 'then' in answer;
        const provided = isLater ? await stepInTime(answer, policy, gateway.stepTimeoutMs) : answer;
        if (provided !== undefined) Object.assign(call, provided);
        // Without a client nothing more is taken. An answer that the upstream has begun is still read and charged.
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

/** The client left, or the money ended, after an upstream took the request: the steps behind settle what it answers. */
function isReadOn({ leftAtMs, isOutOfMoney, answer }: Call): boolean {
  return (leftAtMs !== undefined || isOutOfMoney) && answer !== undefined;
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

/** Answers with the error's envelope after everything that was taken has been given back. */
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
  tellFacts(call, error);
  if (error.code === 'INTERNAL_ERROR') {
    const fault = describeFault(error.options.cause ?? error);
    gateway.log.error({ requestId: call.id, policy: policyName, error: fault }, 'a policy failed');
  }
  try {
    error = await call.refusal(error);
  } catch (hookFailure) {
    error = toGatewayError(hookFailure);
  }
  tellFacts(call, error);
  await call.end();
  if (response.headersSent) return void response.destroy();
  response.setHeader('x-routing-attempts', String(call.facts.attempts));
  response.setHeader('x-routing-fallback', String(call.facts.fallback));
  const routing = routingHeader(call.facts.routing);
  if (routing !== undefined) response.setHeader(ROUTING_HEADER, routing);
  sendError(request, response, error, call.id);
}

function tellFacts(call: Call, error: GatewayError): void {
  call.facts.status = error.status;
  call.facts.errorCode = error.code;
}
