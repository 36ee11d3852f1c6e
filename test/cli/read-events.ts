import { EventSourceParserStream } from 'eventsource-parser/stream';

export interface StreamFrame {
  event: string;
  data: Record<string, unknown>;
}

/** Reads server-sent events until `enough` returns true, then closes the stream. */
export async function readEvents(
  response: Response,
  enough: (frames: StreamFrame[]) => boolean,
): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  const stream = response.body
    ?.pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { event = 'message', data } of stream ?? []) {
    frames.push({ event, data: JSON.parse(data) as Record<string, unknown> });
    if (enough(frames)) return frames;
  }
  throw new Error(`the stream ended after ${JSON.stringify(frames)}`);
}
