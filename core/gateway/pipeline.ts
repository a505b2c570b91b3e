import type { IncomingMessage, ServerResponse } from 'node:http';
import { toGatewayError } from '../api/to-gateway-error';
import { fail, type GatewayError } from '../base/errors';
import { andThen, type MaybeLater } from '../base/maybe-later';
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
 * Waits for a step, at most until its timeout, and ignores a later result. Without a timeout, a policy that never resolves would keep a
 * call, its connection and its hold forever. A policy that limits its own waiting has no such timeout.
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

/** The parts of the gateway that a pipeline needs to prepare its policies and to run its steps. */
export interface PipelineGateway extends Gateway {
  readonly configuration: Configuration<Policy>;
  readonly openCalls: OpenCalls;
  /** How long a step may take, in milliseconds, unless its policy limits its own waiting. */
  readonly stepTimeoutMs: number;
}

/** A policy with its settings, ready to run. */
export interface PreparedStep {
  readonly policy: Policy;
  readonly step: AnyStep;
  /** The number that identifies the policy to the watchdog. */
  readonly owner: number;
}

/** Prepares a step with its settings. If a rollout changes the settings, each call gets those of its group (treatment or control). */
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
    if (change.kind !== 'settings' || change.pipeline !== pipeline) continue;
    const changed = change.settings[policy.name];
    if (changed === undefined) continue;
    const checked = checkAction(policy, { ...(settings as object), ...changed });
    if ('problems' in checked)
      throw new Error(
        `the settings of rollout "${rollout.name}" are invalid, although the configuration was checked before`,
      );
    const other = prepare(checked.value);
    // The caller's API key is known at this step, because the configuration's check allows no rollout to change the steps before identification.
    const serves = policy.serves?.(checked.value, gateway);
    const groupOf = (call: Call) => {
      if (call.facts.rollout === undefined && serves?.(call) === false) call.facts.rollout = null;
      return gateway.rollouts.join(rollout, call as JoiningCall)?.group;
    };
    if (serves === undefined)
      return { policy, owner, step: (call, ...rest) => (groupOf(call) === 'treatment' ? other : step)(call, ...rest) };
    // The settings of the API key that this node knows may be old. Newer ones may demand what the treatment cannot serve.
    const stepFor = (call: Call): MaybeLater<AnyStep> => {
      if (groupOf(call) !== 'treatment' || call.key === undefined) return step;
      return gateway.keys.confirm(call.key).then((key) => {
        Object.assign(call, { key });
        if (serves(call)) return other;
        call.facts.rollout = null;
        return step;
      });
    };
    return { policy, owner, step: (call, ...rest) => andThen(stepFor(call), (chosen) => chosen(call, ...rest)) };
  }
  return { policy, owner, step };
}

/**
 * Returns a pipeline as one function that does the same as the policies that Express Gateway mounts one by one. It never throws. It calls
 * `done` after the last step: with true if no step has answered, so that the code after the pipeline must answer.
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

/** Runs one step. Resolves with true if the next step is to run. Never rejects, because it answers the client itself if the step throws. */
export function runStep(
  prepared: PreparedStep,
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
  gateway: PipelineGateway,
): Promise<boolean> {
  return new Promise((resolve) => new Run([prepared], call, request, response, gateway, resolve).from(0));
}

/** The execution of the steps of one call's pipeline. The next step runs synchronously unless the previous one has returned a promise. */
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
        // A step's result is awaited only if it is a promise.
        if (answer !== undefined && 'then' in answer) return void this.#await(answer, at);
        this.#take(answer);
      } catch (error) {
        return void this.#refuse(error, at);
      }
      if (this.response.headersSent) return void this.#end(false);
    }
    this.#end(true);
  }

  /** Continues with the next step of the pipeline when the promise of a step has settled. */
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

  /**
   * Copies the fields that a step returned to the call. @throws ClientLeft if the client has disconnected. It does not throw if an upstream
   * has begun its answer, because the gateway still reads and charges that answer.
   */
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

/** Returns true if the client disconnected after an upstream had begun its answer. The later steps then read and settle that answer. */
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
    gateway.log.error(
      { requestId: call.id, policy: policyName, error: fault },
      'a policy failed with an unexpected error; the client got INTERNAL_ERROR',
    );
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
