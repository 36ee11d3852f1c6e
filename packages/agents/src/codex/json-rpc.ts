import { TroupeError } from '../troupe.ts';

/** Handles what the other side sends. */
export interface RpcPeer {
  notified(method: string, params: unknown): void;
  /** A request whose handler throws is answered with an error, so that none is left hanging. */
  requested(method: string, params: unknown): Promise<unknown>;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

const METHOD_NOT_FOUND = -32601;
const CALLERS_FAULT = [-32600, -32602];
/** Messages for a missing thread or turn, or one that another process holds. */
const LOST =
  /no rollout found|invalid (session|thread) id|(thread|turn|session) not found|active writer|thread .{0,60} is closing/i;

/** JSON-RPC 2.0 in both directions, one message per line. */
export class JsonRpc {
  readonly #write: (line: string) => void;
  readonly #peer: RpcPeer;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #ended: TroupeError | null = null;

  constructor(write: (line: string) => void, peer: RpcPeer) {
    this.#write = write;
    this.#peer = peer;
  }

  /** Rejects with a TroupeError. */
  async call(method: string, params: object): Promise<unknown> {
    if (this.#ended) throw this.#ended;
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#calls.set(id, answer);
    this.#send({ id, method, params });
    return answer.promise;
  }

  notify(method: string): void {
    this.#send({ method });
  }

  receive(line: string): void {
    const message = parse(line);
    if (!message) return;
    const { id, method, params } = message;
    if (method === undefined) return this.#answered(message);
    if (id === undefined) return this.#peer.notified(method, params);
    void this.#answer(id, method, params);
  }

  /** Rejects all pending calls: no more responses will come. */
  end(reason: TroupeError): void {
    this.#ended ??= reason;
    for (const { reject } of this.#calls.values()) reject(reason);
    this.#calls.clear();
  }

  #answered({ id, result, error }: Message): void {
    const call = this.#calls.get(Number(id));
    this.#calls.delete(Number(id));
    if (error) call?.reject(failure(error));
    else call?.resolve(result);
  }

  async #answer(id: number | string, method: string, params: unknown): Promise<void> {
    try {
      this.#send({ id, result: await this.#peer.requested(method, params) });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#send({ id, error: { code: METHOD_NOT_FOUND, message } });
    }
  }

  #send(message: Message): void {
    if (!this.#ended) this.#write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}

/** Null for a line that is not a message: a panic, for instance, writes to the same stream. */
function parse(line: string): Message | null {
  try {
    const value = JSON.parse(line) as unknown;
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function failure({ code, message }: { code: number; message: string }): TroupeError {
  if (LOST.test(message)) return new TroupeError('provider_session_lost', message);
  const fault = CALLERS_FAULT.includes(code) ? 'provider_invalid_request' : 'provider_failed';
  return new TroupeError(fault, `Codex refused: ${message}`);
}
