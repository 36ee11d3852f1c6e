/** One frame of a stream of server-sent events. */
export interface ServerFrame {
  event: string;
  data: string;
}

/** Longest silence, ms. A working server sends something every 15 s. */
const SILENCE_MS = 40_000;

/**
 * Frames as they arrive; ends with the response. Uses `fetch`, because `EventSource` cannot send a token. `heard` is called
 * whenever anything arrives. Throws `TypeError` after `SILENCE_MS` without anything.
 */
export async function* readFrames(
  response: Response,
  heard: () => void = () => {},
): AsyncGenerator<ServerFrame, void> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await orSilence(reader.read());
      if (done) return;
      heard();
      rest += value;
      const parts = rest.split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const frame = parse(part);
        if (frame) yield frame;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function orSilence<T>(next: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    const late = `the server has been silent for ${SILENCE_MS / 1_000} s`;
    timer = setTimeout(() => reject(new TypeError(late)), SILENCE_MS);
  });
  try {
    return await Promise.race([next, silence]);
  } finally {
    clearTimeout(timer);
  }
}

function parse(text: string): ServerFrame | null {
  let [event, data] = ['message', null as string | null];
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice(7);
    else if (line.startsWith('data: ')) data = data === null ? line.slice(6) : `${data}\n${line.slice(6)}`;
  }
  return data === null ? null : { event, data };
}
