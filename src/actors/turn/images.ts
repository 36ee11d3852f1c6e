import { MAX_REQUEST_BYTES } from '../../context/index.ts';
import type { ImageRef, PromptMessage } from '../../events/index.ts';
import type { ModelRequest, ModelFailure } from '../../providers/provider.ts';
import { type ShownImage, type TurnRun, changed } from '../attempt/turn-run.ts';

/** Maximum bytes of all images of a request, as base64. */
const MAX_IMAGE_BYTES = 20 * 1_024 * 1_024;
/** Up to this number of images Anthropic allows 8,000 pixels a side, beyond it 2,000. */
const MAX_IMAGES = 20;

const TEXT_ONLY = '[this model is not shown images]';

/**
 * Adds the bytes of the images that the messages name, the newest first, up to the limits. The message says which images are
 * not shown: those beyond the limits, missing from the store, or refused by the model's server, or all if the model takes no
 * images. The recorded prompt names them all.
 */
export async function withImages(run: TurnRun, request: ModelRequest): Promise<ModelRequest> {
  if (!request.messages.some((message) => message.role === 'user' && message.images?.length)) return request;
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
      // After the first image that does not fit none is added, so that no older, smaller one takes its place.
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

/**
 * Images that a model's server has refused. They are left out of later requests of any agent, fork or retry to this model, and
 * the prompt names each in a line. Other models still get them.
 *  P1  A refusal that mentions images is recorded immediately. If it names no cause, the new images are recorded as refused
 *      only when the request is accepted without them.
 *  P2  New images are left out before those that the model accepted in an earlier turn.
 *  P3  Each refusal leaves out at least one more image, so a request is repeated at most as often as it has images.
 */

/** Names that vendors give to images in their errors, also in paths of fields. */
const IMAGE =
  /\bimages?\b|image_?url|input_image|inline_?data|\bpictures?\b|\bphotos?\b|\bvision\b|multi-?modal|mime.?type|media.?type|\bpixels?\b|\bmmproj\b/i;
/** For a failure that may be transient, only these words blame the image. */
const UNREADABLE = /support|process|load|decod|format|invalid|unknown|missing|unable|cannot|could not/i;
/** The refusal is about the number of images or the size of the request, not about a single image. */
const TOO_MANY =
  /(?:at most|up to|more than|maximum(?: of| number of)?|limit of|exceeds?|too many)\D{0,20}(\d{0,4})[^.]{0,20}\bimages\b|too many[^.]{0,40}\bimages?\b|\bimages? .{0,40}(?:at most|limit of|maximum of) (\d{1,4})|at most (\d{1,4}) image/i;
const TOO_LARGE =
  /^413\b|entity too large|payload too large|request_too_large|request (?:body )?(?:is )?too large/i;
const READ_CHARACTERS = 2_000;

type Blame =
  /** The message mentions images. */
  | { kind: 'image' }
  /** Only this many images are accepted; null: fewer than were sent. */
  | { kind: 'number'; most: number | null }
  /** The message names no cause. */
  | { kind: 'unclear' };

const UNCLEAR: Blame = { kind: 'unclear' };

/** How a failed request blames its images; null if they are not the cause. */
function blameOf({ code, message }: Pick<ModelFailure, 'code' | 'message'>): Blame | null {
  const text = message.slice(0, READ_CHARACTERS);
  const speaks = IMAGE.test(text);
  const many = speaks ? TOO_MANY.exec(text) : null;
  if (code === 'context_overflow') return speaks || TOO_LARGE.test(text) ? { kind: 'image' } : null;
  if (code === 'provider_failed') return speaks && UNREADABLE.test(text) ? { kind: 'image' } : null;
  if (code !== 'provider_invalid_request' && code !== 'provider_refused') return null;
  if (many) return { kind: 'number', most: numberIn(many) };
  if (speaks) return { kind: 'image' };
  return text.startsWith('404') ? null : UNCLEAR;
}

function numberIn(match: RegExpExecArray): number | null {
  const found = match.slice(1).find((each) => each !== undefined && each !== '');
  return found === undefined ? null : Number(found);
}

/** The images to leave out. Empty if they are not the cause. */
function imagesToLeaveOut(blame: Blame, shown: readonly ShownImage[]): ImageRef[] {
  const all = shown.map(({ image }) => image);
  if (blame.kind === 'number') {
    const most = blame.most !== null && blame.most < all.length ? blame.most : Math.floor(all.length / 2);
    return all.slice(0, all.length - most);
  }
  const fresh = shown.filter(({ isNew }) => isNew).map(({ image }) => image);
  return fresh.length > 0 || blame.kind === 'unclear' ? fresh : all;
}

/** The run without the refused images, and their number; null if images are not the cause. */
export function leaveImagesOut(run: TurnRun, failure: ModelFailure): { run: TurnRun; count: number } | null {
  const { shown, suspected } = run.meanwhile.images;
  if (shown.length === 0) return null;
  const isStillTooLong = failure.code === 'context_overflow' && run.compaction.overflowed;
  const blame = blameOf(failure) ?? (isStillTooLong ? UNCLEAR : null);
  if (!blame || (blame.kind === 'unclear' && suspected.length > 0)) return null;
  const images = imagesToLeaveOut(blame, shown);
  if (images.length === 0) return null;
  run.meanwhile.images = { shown: [], suspected: [...suspected, ...images] };
  return { run: blame.kind === 'unclear' ? run : rememberRefused(run, images), count: images.length };
}

/** Records images after an answer: those that had to be left out for it, or, if a filter ended the answer, the new ones. */
export function learnRefused(run: TurnRun, isRefusal: boolean): TurnRun {
  const { shown, suspected } = run.meanwhile.images;
  const images = isRefusal ? imagesToLeaveOut(UNCLEAR, shown) : suspected;
  return images.length === 0 ? run : rememberRefused(run, images);
}

function rememberRefused(run: TurnRun, images: readonly ImageRef[]): TurnRun {
  const { deps, live, runtime } = run;
  const keys = images.map((image) => refusedKey(run, image));
  return changed(run, { model: deps.models.learnRefused(live.address.tenant, runtime.profile, keys) });
}

/** Key of a refused image. Contains the server, because another server with the same model may accept the image. */
function refusedKey({ runtime }: TurnRun, { hash }: ImageRef): string {
  const { server } = runtime.provider;
  return server ? `${server.address}:${server.port} ${hash}` : hash;
}

function isRefused(run: TurnRun, image: ImageRef): boolean {
  const { suspected } = run.meanwhile.images;
  return (
    suspected.some(({ hash }) => hash === image.hash) || run.model.refused.includes(refusedKey(run, image))
  );
}
