import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { pino } from 'pino';
import { OpenCalls } from '../../core/calls/open-calls';
import type { PipelineGateway } from '../../core/gateway/pipeline';
import { LiveRollouts } from '../../core/rollouts/live-rollouts';

/** Makes a request as Node hands it over, without a network. Its body has been read. */
export function sampleRequest(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.method = method;
  request.url = url;
  Object.assign(request.headers, headers);
  request.complete = true;
  return request;
}

/** A response that records its output, and whose client can disconnect. */
export class SampleResponse extends ServerResponse {
  body = '';
  readonly closed_ = new Promise<void>((resolve) => this.once('close', resolve));

  constructor(request: IncomingMessage) {
    super(request);
    const take = (chunk: unknown) => {
      if (typeof chunk === 'string' || Buffer.isBuffer(chunk)) this.body += String(chunk);
    };
    const end = super.end.bind(this);
    this.end = ((chunk?: unknown) => {
      take(chunk);
      if (!this.headersSent) this.writeHead(this.statusCode);
      Object.defineProperty(this, 'writableFinished', { value: true });
      this.emit('finish');
      this.emit('close');
      return this;
    }) as typeof end;
  }

  /** Closes the connection as the client does. */
  clientLeaves(): void {
    this.emit('close');
  }

  get json(): Record<string, unknown> {
    return JSON.parse(this.body) as Record<string, unknown>;
  }
}

/** Makes a gateway with only these parts; all others are undefined. */
export function sampleGateway(parts: Partial<PipelineGateway> = {}): PipelineGateway {
  return {
    log: pino({ level: 'silent' }),
    stepTimeoutMs: 30_000,
    isStopping: () => false,
    openCalls: new OpenCalls(),
    isOutboxFull: () => false,
    configRevision: 'r',
    configuration: { rollouts: [] } as unknown as PipelineGateway['configuration'],
    rollouts: new LiveRollouts(),
    ...parts,
  } as PipelineGateway;
}
