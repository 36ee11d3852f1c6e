import { signal, type Signal } from '@preact/signals';
import { remember, remembered } from '../state/remember.ts';

/** Width or height of a part, px. The browser remembers it. */
export interface Size {
  name: string;
  label: string;
  px: Signal<number>;
  min: number;
  max: number;
  /** The direction in which the part grows. */
  grows: 'right' | 'left' | 'down';
}

export function rememberedSize(of: Omit<Size, 'px'>, usual: number): Size {
  const given = Number(remembered(of.name) ?? usual);
  return { ...of, px: signal(clamp(Number.isFinite(given) ? given : usual, of)) };
}

function clamp(px: number, { min, max }: Pick<Size, 'min' | 'max'>): number {
  return Math.round(Math.min(max, Math.max(min, px)));
}

const STEP_PX = 16;

/** Moved with the pointer or the arrow keys. */
export function Separator({ size }: { size: Size }) {
  const { px, min, max, grows, name, label } = size;
  const set = (value: number) => {
    px.value = clamp(value, size);
    remember(name, String(px.value));
  };
  const isDown = grows === 'down';
  const onPointerDown = (event: PointerEvent) => {
    event.preventDefault();
    const bar = event.currentTarget as HTMLElement;
    bar.setPointerCapture(event.pointerId);
    const from = isDown ? event.clientY : event.clientX;
    // A part may be lower than it is allowed to be.
    const seen = isDown ? bar.previousElementSibling?.clientHeight : undefined;
    const start = Math.min(px.peek(), seen ?? Number.POSITIVE_INFINITY);
    const onMove = (move: PointerEvent) => {
      const moved = (isDown ? move.clientY : move.clientX) - from;
      set(start + (grows === 'left' ? -moved : moved));
    };
    bar.addEventListener('pointermove', onMove);
    const stop = () => bar.removeEventListener('pointermove', onMove);
    bar.addEventListener('lostpointercapture', stop, { once: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const [more, less] = {
      right: ['ArrowRight', 'ArrowLeft'],
      left: ['ArrowLeft', 'ArrowRight'],
      down: ['ArrowDown', 'ArrowUp'],
    }[grows];
    if (event.key !== more && event.key !== less) return;
    event.preventDefault();
    set(px.peek() + (event.key === more ? STEP_PX : -STEP_PX));
  };
  return (
    <div
      class={`separator separator-${isDown ? 'across' : 'along'}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={isDown ? 'horizontal' : 'vertical'}
      aria-valuenow={px.value}
      aria-valuemin={min}
      aria-valuemax={max}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    />
  );
}
