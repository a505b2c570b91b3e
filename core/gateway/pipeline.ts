import type { IncomingMessage, ServerResponse } from 'node:http';
import { toGatewayError } from '../api/to-gateway-error';
import { fail, type GatewayError } from '../base/errors';
import { detectLeaks } from '../base/resource-leaks';
import { safeErrorFields } from '../base/safe-error';
import { enter, ownerNumber, within } from '../base/watchdog';
import { withTimeout } from '../base/with-timeout';
import type { Call, CallFields, Declared } from '../calls/call';
import type { OpenCalls } from '../calls/open-calls';
import { ROUTING_HEADER, routingHeader } from '../calls/routing-header';
import type { Configuration } from '../configuration/configuration';
import { checkAction, type PipelineSettings, type StepSettings } from '../configuration/pipelines';
import { CLIENT_LEFT_STATUS, ClientLeft } from '../http/client-left';
import { sendError } from '../http/http';
import type { JoiningCall } from '../rollouts/live-rollouts';
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
  return withTimeout(step, timeoutMs, late);
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
  const prepare = (own: unknown) => within(owner, () => detectLeaks(name, () => policy.prepare(own, gateway)));
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

/**
 * Returns a pipeline as one function. It does the same as the policies that Express Gateway mounts one by one, and never throws.
 * `done` is called when no step follows: with true if the last one has left the answer to what comes behind the pipeline.
 */
export function compilePipeline(
  pipeline: PipelineSettings<Policy>,
  gateway: PipelineGateway,
): (call: Call, request: IncomingMessage, response: ServerResponse, done?: (continues: boolean) => void) => void {
  const steps = pipeline.steps.map((step) => prepareStep(step, pipeline.name, gateway));
  return (call, request, response, done = ignore) => new Run(steps, call, request, response, gateway, done).from(0);
}

function ignore(): void {}

/** Returns the facts that the steps of a pipeline declare to earlier ones. */
export function declaredBy({ steps }: PipelineSettings): Declared {
  return Object.assign({}, ...steps.map(({ policy, settings }) => policy.declares?.(settings))) as Declared;
}

/** Runs one step. Resolves with true if the next is to follow. It answers errors of the step itself, so it never rejects. */
export function runStep(
  prepared: PreparedStep,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: PipelineGateway,
): Promise<boolean> {
  return new Promise((resolve) => new Run([prepared], call, request, response, gateway, resolve).from(0));
}

/** The steps of one call. They follow each other at once until one returns a promise. */
class Run {
  constructor(
    private readonly steps: readonly PreparedStep[],
    private readonly call: Call,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly gateway: PipelineGateway,
    private readonly done: (continues: boolean) => void,
  ) {
    call.beginStep();
  }

  from(first: number): void {
    for (let at = first; at < this.steps.length; at += 1) {
      const prepared = this.steps[at] as PreparedStep;
      try {
        const answer = takeStep(prepared, this.call, this.request, this.response);
        // A result that is already there is not awaited.
        if (answer !== undefined && 'then' in answer) return void this.#await(answer, at);
        this.#take(answer);
      } catch (error) {
        return void this.#refuse(error, at);
      }
      if (this.response.headersSent) return void this.#end(false);
    }
    this.#end(true);
  }

  /** Continues when a step has done what it promised. */
  #await(answer: Promise<Partial<CallFields> | undefined>, at: number): void {
    const { policy } = this.steps[at] as PreparedStep;
    stepInTime(answer, policy, this.gateway.stepTimeoutMs).then(
      (provided) => {
        try {
          this.#take(provided);
        } catch (error) {
          return this.#refuse(error, at);
        }
        if (this.response.headersSent) this.#end(false);
        else this.from(at + 1);
      },
      (error: unknown) => this.#refuse(error, at),
    );
  }

  /** Leaves the fields of a step on the call. @throws ClientLeft. An answer that the upstream has begun is still read and charged. */
  #take(provided: Partial<CallFields> | undefined): void {
    const { call, response } = this;
    if (provided !== undefined) Object.assign(call, provided);
    if (call.hasLeft && !response.headersSent && !isReadOn(call)) throw new ClientLeft();
  }

  #refuse(error: unknown, at: number): void {
    const { call, request, response, gateway } = this;
    const { policy } = this.steps[at] as PreparedStep;
    const end = () => this.#end(false);
    refuse(error, policy.name, call, request, response, gateway).then(end, (failure: unknown) => {
      end();
      throw failure;
    });
  }

  #end(continues: boolean): void {
    this.call.endStep(continues);
    this.done(continues);
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
    await call.end();
    return;
  }
  let error = toGatewayError(call.cutOffBy ?? thrown);
  recordFacts(call, error);
  if (error.code === 'INTERNAL_ERROR') {
    const fault = safeErrorFields(error.options.cause ?? error);
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
