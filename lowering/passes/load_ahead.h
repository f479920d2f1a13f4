// Loads at the start of a serial loop's body that are made for later iterations while one computes.
#pragma once

#include <map>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// So many iterations of a loop have what they load in shared memory at once, each thread's in places of its own. 1 stage, of a loop over
/// blocks: nothing is ahead.
struct Pipeline {
    int stages = 1;
    std::string place;  ///< of its directive, for messages
};
/// A note at the beginning of a launch, for hold_loads().
tile::Statement note_of_pipeline(const std::string &loop, const Pipeline &pipeline);
/// Takes the notes out of the launch: loop -> its pipeline.
std::map<std::string, Pipeline> take_pipelines(tile::Launch &launch);

/// Of all registers that the first `loads` statements of the loop's body load.
std::int64_t loaded_bytes(const tile::Launch &launch, const tile::For &loop, std::size_t loads);
/// An iteration's loads are issued into registers during the one before. Gives what stands before the loop.
tile::Block load_next(tile::Launch &launch, tile::For &loop, std::size_t loads);
/// Shared memory for a thread's own vectors: `stages` times what the registers hold of one iteration; made where it is not there yet.
const tile::Buffer &own_places(tile::Launch &launch, const tile::Buffer &held, int stages);
/// Whether a load may go past the registers: of 4, 8 or 16 bytes at once.
bool goes_past_registers(const tile::Launch &launch, const tile::VectorLoad &load);
/// The load as a copy to a place of its thread in shared memory, which is there when copies_wait() says so.
tile::Statement copy_of(const tile::VectorLoad &load, const tile::Buffer &to, const std::vector<tile::Expr> &place);
/// A call without arguments.
tile::Statement call_of(const std::string &function, const std::vector<std::string> &template_arguments = {});
/// An iteration's loads go past the registers into a ring of `stages` places in shared memory, `stages` - 1 iterations ahead; each thread
/// takes what it has fetched itself. Loads of less than 4 bytes stay as they are. Gives what stands before the loop.
tile::Block load_ring(tile::Launch &launch, tile::For &loop, std::size_t loads, int stages);

}  // namespace tilewright
