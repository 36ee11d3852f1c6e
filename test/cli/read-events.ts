import { readServerEvents } from '../../src/cli/read-server-events.ts';

export interface StreamFrame {
  event: string;
  data: Record<string, unknown>;
}

/** Reads server-sent events until `enough` says so, then lets go of the stream. */
export async function readEvents(
  response: Response,
  enough: (frames: StreamFrame[]) => boolean,
): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  for await (const { event, data } of readServerEvents(response)) {
    frames.push({ event, data: JSON.parse(data) as Record<string, unknown> });
    if (enough(frames)) return frames;
  }
  throw new Error(`the stream ended after ${JSON.stringify(frames)}`);
}
