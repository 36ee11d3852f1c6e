import { Agent, request } from 'node:http';

/** A server that is silent this long is frozen: the request counts as not accepted. */
const PATIENCE_MS = 10_000;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

export function postJson(
  url: string,
  path: string,
  { key, body }: { key: string; body: unknown },
): Promise<{ status: number; json: unknown }> {
  const text = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  };
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}${path}`,
      { method: 'POST', agent, headers, timeout: PATIENCE_MS },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => {
          const answered = Buffer.concat(parts).toString('utf8');
          resolve({ status: response.statusCode ?? 0, json: parse(answered) });
        });
      },
    );
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error(`${url} is silent`)));
    sent.end(text);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // A response that is not JSON has a status that says enough.
  }
}
