import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import type { Answer, Call } from './documents-elsewhere.ts';

/** The other side of `documents-elsewhere.ts`; ends when its parent disconnects. */
const documents = createMemoryDocuments();

async function answerTo({ id, collection, name, args }: Call): Promise<Answer> {
  try {
    const methods = documents[collection] as unknown as Record<
      string,
      (...args: unknown[]) => Promise<unknown>
    >;
    return { id, value: await methods[name]?.(...args) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

process.on('message', (call: Call) => {
  void answerTo(call).then((answer) => process.send?.(answer));
});
process.send?.('ready');
