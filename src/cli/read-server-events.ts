/** The events of a `text/event-stream` response; comments and ids are passed over. */
export async function* readServerEvents(
  response: Response,
): AsyncGenerator<{ event: string; data: string }, void> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const fields = new Map(frame.split('\n').map(splitField));
        const data = fields.get('data');
        if (data !== undefined) yield { event: fields.get('event') ?? 'message', data };
      }
    }
  } catch (error) {
    // Whoever aborted the request knows that it has ended.
    if (!(error instanceof Error && error.name === 'AbortError')) throw error;
  }
}

function splitField(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}
