/** One frame of a stream of server-sent events. */
export interface ServerFrame {
  event: string;
  data: string;
}

/** Frames as they arrive; ends with the response. Uses `fetch`, because `EventSource` cannot send a token. */
export async function* readFrames(response: Response): AsyncGenerator<ServerFrame, void> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
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

function parse(text: string): ServerFrame | null {
  let [event, data] = ['message', null as string | null];
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice(7);
    else if (line.startsWith('data: ')) data = data === null ? line.slice(6) : `${data}\n${line.slice(6)}`;
  }
  return data === null ? null : { event, data };
}
