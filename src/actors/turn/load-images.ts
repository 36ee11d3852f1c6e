import { MAX_REQUEST_BYTES } from '../../context/index.ts';
import type { ImageRef, PromptMessage } from '../../events/index.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import { isRefused } from './refused-images.ts';
import type { ShownImage, TurnRun } from './turn-run.ts';

/** Limit for all images of a request together, as base64. */
const MAX_IMAGE_BYTES = 20 * 1_024 * 1_024;
/** Anthropic allows 8,000 pixels a side up to this number of images, and 2,000 pixels beyond it. */
const MAX_IMAGES = 20;

const TEXT_ONLY = '[this model is not shown images]';

/**
 * Adds the bytes of the images that the messages name, the newest first, up to the limits. The message says which images
 * are not shown: those beyond the limits, missing from the store, refused by the model's server, or all of them if the model
 * takes no images. The recorded prompt names them all.
 */
export async function withImages(run: TurnRun, request: ModelRequest): Promise<ModelRequest> {
  if (!request.messages.some(hasImages)) return request;
  if (!run.runtime.provider.capabilities.images) {
    return { ...request, messages: request.messages.map((message) => showing([], message, TEXT_ONLY)) };
  }
  const images = new Map<string, string>();
  const messages: PromptMessage[] = [];
  const sent: ShownImage[] = [];
  let room = Math.min(MAX_IMAGE_BYTES, MAX_REQUEST_BYTES - run.live.view.bytes);
  let left = MAX_IMAGES;
  for (const message of request.messages.toReversed()) {
    const shown = new Set<ImageRef>();
    for (const image of imagesOf(message).toReversed()) {
      const data = left > 0 && !isRefused(run, image) ? await readImage(run, image) : null;
      if (data === null) continue;
      room -= data.length;
      // The first image that does not fit ends the loop: an older, smaller one must not take its place.
      left = room < 0 ? 0 : left - 1;
      if (room < 0) break;
      images.set(image.hash, data);
      shown.add(image);
      sent.push({ image, isNew: isNew(run, message) });
    }
    messages.push(withOnly(run, message, shown));
  }
  run.meanwhile.images = { ...run.meanwhile.images, shown: sent.toReversed() };
  return { ...request, messages: messages.toReversed(), images };
}

/** Images that a turn has read: its later steps show them again. */
const read = new WeakMap<TurnRun['meanwhile'], Map<string, string | null>>();

async function readImage(run: TurnRun, { hash }: ImageRef): Promise<string | null> {
  const known = read.get(run.meanwhile) ?? new Map<string, string | null>();
  read.set(run.meanwhile, known);
  const before = known.get(hash);
  if (before !== undefined) return before;
  const data = await run.deps.store.readBody(run.live.address.tenant, hash);
  known.set(hash, data);
  return data;
}

function imagesOf(message: PromptMessage): readonly ImageRef[] {
  return message.role === 'user' ? (message.images ?? []) : [];
}

function hasImages(message: PromptMessage): boolean {
  return imagesOf(message).length > 0;
}

/** Whether the agent answers the message now for the first time. */
function isNew({ lease, turn }: TurnRun, { seqs }: PromptMessage): boolean {
  return seqs.some((seq) => seq > lease.record.processed || turn.inputs.includes(seq));
}

function withOnly(run: TurnRun, message: PromptMessage, shown: ReadonlySet<ImageRef>): PromptMessage {
  const images = imagesOf(message);
  const notes = images.flatMap((image, index) => {
    if (shown.has(image)) return [];
    const why = isRefused(run, image) ? ': the server of this model refused it' : '';
    return [`[image ${index + 1} of this message is not shown${why}]`];
  });
  if (notes.length === 0) return message;
  return showing(
    images.filter((image) => shown.has(image)),
    message,
    notes.join('\n'),
  );
}

function showing(images: ImageRef[], message: PromptMessage, note: string): PromptMessage {
  if (message.role !== 'user' || !message.images) return message;
  const { images: _, ...words } = message;
  return { ...words, content: `${words.content}\n${note}`, ...(images.length > 0 && { images }) };
}
