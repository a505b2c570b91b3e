import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Call, ClientLeft, type Foretold } from './call';
import type { PipelineSettings, StepSettings } from './configuration';
import { fail, type GatewayError } from './errors';
import type { Gateway } from './gateway';
import { sendError } from './http';
import type { JoiningCall } from './live-rollouts';
import { type AnyStep, checkAction, type Policy } from './policy';
import { ROUTING_HEADER, routingHeader } from './routing-header';
import { inTime } from './step-timeout';
import { describeFault, toGatewayError } from './thrown';

/** A policy with its settings, ready to run. */
export interface PreparedStep {
  readonly policy: Policy;
  readonly step: AnyStep;
}

/** With the settings it has, or, where a rollout changes them, with those that the call's group has. */
export function prepareStep({ policy, settings }: StepSettings, pipeline: string, gateway: Gateway): PreparedStep {
  const step = policy.prepare(settings, gateway);
  for (const rollout of gateway.configuration.rollouts) {
    const { change } = rollout;
    if (change.is !== 'settings' || change.pipeline !== pipeline) continue;
    const changed = change.settings[policy.name];
    if (changed === undefined) continue;
    const checked = checkAction(policy, { ...(settings as object), ...changed });
    if ('problems' in checked) throw new Error(`rollout "${rollout.name}" has settings that were not checked`);
    const other = policy.prepare(checked.value, gateway);
    // Checked with the configuration: nobody changes what runs before it is known who is calling.
    const armOf = (call: Call) => gateway.rollouts.join(rollout, call as JoiningCall)?.arm;
    return { policy, step: (call, ...rest) => (armOf(call) === 'candidate' ? other : step)(call, ...rest) };
  }
  return { policy, step };
}

/** The same pipeline that Express Gateway mounts policy by policy, as one function. Never rejects. */
export function compilePipeline(
  pipeline: PipelineSettings,
  gateway: Gateway,
): (call: Call, request: IncomingMessage, response: ServerResponse) => Promise<unknown> {
  const steps = pipeline.steps.map((step) => prepareStep(step, pipeline.name, gateway));
  return (call, request, response) => runSteps(steps, call, request, response, gateway);
}

/** What the steps of a pipeline tell those before them. */
export function foretoldBy({ steps }: PipelineSettings): Foretold {
  return Object.assign({}, ...steps.map(({ policy, settings }) => policy.foretells?.(settings))) as Foretold;
}

/** Runs one step; true when the next is to follow. What the step throws is answered here, so this never rejects. */
export function runStep(
  prepared: PreparedStep,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: Gateway,
): Promise<boolean> {
  return runSteps([prepared], call, request, response, gateway);
}

async function runSteps(
  steps: readonly PreparedStep[],
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: Gateway,
): Promise<boolean> {
  call.beginStep();
  try {
    for (const { policy, step } of steps) {
      try {
        const answer = step(call, request, response);
        // Nobody waits for what is there already.
        const isLater = answer !== undefined && 'then' in answer;
        const provided = isLater ? await inTime(answer, policy, gateway.stepTimeoutMs) : answer;
        if (provided !== undefined) Object.assign(call, provided);
        // Nobody waits for the steps that would follow, and nothing more is taken for them.
        if (call.hasLeft && !response.headersSent) throw new ClientLeft();
      } catch (error) {
        await refuse(error, policy.name, call, request, response, gateway);
        return false;
      }
      if (response.headersSent) return false;
    }
    return true;
  } finally {
    call.endStep();
  }
}

/** Answers with the error's envelope after everything that was taken has been given back. */
async function refuse(
  thrown: unknown,
  policyName: string,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: Gateway,
): Promise<void> {
  if (!call.isCutOff && (thrown instanceof ClientLeft || call.hasLeft)) {
    call.facts.status = CLIENT_LEFT_STATUS;
    call.facts.errorCode = 'CLIENT_LEFT';
    await call.refusal(fail('INTERNAL_ERROR', { cause: thrown })).catch(() => undefined);
    return call.end();
  }
  let error = toGatewayError(call.isCutOff ? fail('DRAINING', { retryAfterSeconds: 1, cause: thrown }) : thrown);
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

/** What the usage record says of a call whose client left before it was answered. */
const CLIENT_LEFT_STATUS = 499;
