export default function Lists() {
  return null
}
