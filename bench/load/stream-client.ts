import { get, type IncomingMessage } from 'node:http';

export interface StreamClient {
  /** The last seq without a gap before it. */
  upTo: () => number;
  /** Events that came twice or out of order. */
  faults: () => number;
  /** From now on, reads as fast as events come. */
  hurry: () => void;
  close: () => void;
}

/** A slow reader takes one chunk of what the kernel holds, and then pauses this long. */
const SLOW_PAUSE_MS = 2_000;

/** Follows one conversation over a socket, and checks that its seqs are 1, 2, 3, … */
export async function openStream(options: {
  url: string;
  key: string;
  conversation: string;
  isSlow: boolean;
}): Promise<StreamClient> {
  const { url, key, conversation } = options;
  let { isSlow } = options;
  let seq = 0;
  let faults = 0;
  let rest = '';
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    get(`${url}/api/events?conversation=${conversation}&after=0`, { headers, agent: false }, resolve).on(
      'error',
      reject,
    );
  });
  if (response.statusCode !== 200) throw new Error(`a stream was refused with ${response.statusCode}`);
  response.setEncoding('utf8');
  response.on('data', (text: string) => {
    const parts = (rest + text).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const id = /^id: (\d+)$/m.exec(part)?.[1];
      if (id === undefined) continue;
      if (Number(id) === seq + 1) seq += 1;
      else faults += 1;
    }
    if (!isSlow) return;
    response.pause();
    setTimeout(() => response.resume(), SLOW_PAUSE_MS);
  });
  response.on('error', () => {});
  return {
    upTo: () => seq,
    faults: () => faults,
    hurry() {
      isSlow = false;
      response.resume();
    },
    close: () => response.destroy(),
  };
}
